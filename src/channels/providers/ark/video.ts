/** Ark's video tasks, `contents/generations/tasks`. */
import { z } from 'zod'
import type { JobOf, VideoPart } from '../../../../schemas/media/job.ts'
import type {
  MediaAdapter,
  MediaAnswer,
  MediaSubmit,
  PollOutcome,
  SubmitOutcome,
} from '../../media/adapter.ts'
import {
  acceptedAs,
  asyncRefusal,
  fieldsIn,
  fieldsOf,
  isSuccess,
  looseId,
  looseSeconds,
  looseText,
  looseWord,
  messageOf,
  outcomeBy,
  pollError,
  refused,
  unknown,
} from '../../media/answer.ts'
import { mediaFailureStatus } from '../../media/failure.ts'
import { produced, sourceOf } from '../../media/files.ts'
import {
  bareRequest,
  definedFields,
  getRequest,
  jsonRequest,
  notServed,
  pathPart,
} from '../../media/request.ts'
import { arkFailureCode, arkRefusal } from './failure.ts'

const TASKS = '/contents/generations/tasks'
/** Role that every video of a request must have: reference alone. */
const VIDEO_ROLE = 'reference_video'

function partOf(part: VideoPart, resolveUrl: MediaSubmit['resolveUrl']): Record<string, unknown> {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'image':
      return definedFields({ type: 'image_url', image_url: { url: resolveUrl(part.file) }, role: part.role })
    case 'video':
      return { type: 'video_url', video_url: { url: resolveUrl(part.file) }, role: part.role ?? VIDEO_ROLE }
  }
}

const bodyOf = (job: JobOf<'video'>, model: string, resolveUrl: MediaSubmit['resolveUrl']): unknown =>
  definedFields({
    model,
    content: job.content.map((part) => partOf(part, resolveUrl)),
    duration: job.duration,
    resolution: job.resolution,
    ratio: job.ratio,
    seed: job.seed,
    framespersecond: job.fps,
    watermark: job.watermark,
    camera_fixed: job.camera_fixed,
    generate_audio: job.generate_audio,
  })

const submitted = z.looseObject({ id: looseId, status: looseWord })

function readSubmit(answer: MediaAnswer): SubmitOutcome {
  if (!isSuccess(answer)) return arkRefusal(answer, asyncRefusal(answer))
  const body = fieldsIn(answer)
  if (body === null) return unknown('The answer is no JSON object.')
  const { id, status } = submitted.parse(body)
  if (id !== null) return acceptedAs(id, status ?? 'queued', 'running')
  if (!body.error) return unknown('The answer names no task.')
  return refused(
    mediaFailureStatus(arkFailureCode(codeIn(body.error))),
    messageOf(body, 'The upstream refused.'),
  )
}

const task = z.looseObject({
  status: looseWord,
  content: z.looseObject({ video_url: looseText }).catch({ video_url: null }).default({ video_url: null }),
  duration: looseSeconds,
  frames: looseSeconds,
  framespersecond: looseSeconds,
  resolution: looseWord,
  input_video_duration: looseSeconds,
})
type Task = z.infer<typeof task>

const codeIn = (error: unknown): string => {
  const code = fieldsOf(error)?.code
  return typeof code === 'string' ? code : ''
}

/** Returns the length: the upstream reports either it, or frames and their number per second. */
const secondsOf = ({ duration, frames, framespersecond }: Task): number | null =>
  duration ?? (frames !== null && framespersecond !== null ? frames / framespersecond : null)

function delivered(body: Task): PollOutcome {
  const source = sourceOf(body.content.video_url)
  const upstreamState = 'succeeded'
  const message = 'The upstream finished the task and named no video.'
  if (source === null) return { type: 'failed', upstreamState, code: 'generation_failed', message }
  const seconds = secondsOf(body)
  const input_seconds = body.input_video_duration
  return {
    ...produced([{ role: 'video', source, facts: { seconds } }], {
      seconds,
      input_seconds,
      variant: body.resolution,
    }),
    upstreamState,
  }
}

function readPoll(answer: MediaAnswer): PollOutcome {
  const body = isSuccess(answer) ? fieldsIn(answer) : null
  if (body === null) return pollError(answer)
  const read = task.parse(body)
  return outcomeBy(answer, read.status, {
    queued: 'queued',
    running: 'running',
    cancelled: 'cancelled',
    expired: 'lapsed',
    succeeded: () => delivered(read),
    failed(upstreamState) {
      const code = arkFailureCode(codeIn(body.error))
      return { type: 'failed', upstreamState, code, message: messageOf(body.error, 'The generation failed.') }
    },
  })
}

export const arkVideo: MediaAdapter = {
  baseUrl: { end: '/api/v3', appended: '/contents/generations/tasks' },
  works: ['video'],
  inlines: true,
  submit(channel, { job, upstreamModel, resolveUrl }) {
    return job.work === 'video'
      ? jsonRequest(channel, TASKS, bodyOf(job, upstreamModel, resolveUrl))
      : notServed(job)
  },
  readSubmit,
  follow: {
    poll: (channel, { upstreamId }) => getRequest(channel, `${TASKS}/${pathPart(upstreamId)}`),
    readPoll,
    // Of a queued task this cancels, of a running one it is refused; of one that is over it deletes the record, which
    // is why it is sent for queued tasks alone.
    cancel: (channel, { upstreamId }) => bareRequest(channel, 'DELETE', `${TASKS}/${pathPart(upstreamId)}`),
  },
}
