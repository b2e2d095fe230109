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
  chooseOutcome,
  isSuccess,
  looseId,
  looseSeconds,
  looseText,
  looseWord,
  makeAccepted,
  makeRefused,
  makeUnknown,
  pollError,
  readAsyncRefusal,
  readFields,
  readMessage,
  toFields,
} from '../../media/answer.ts'
import { findMediaFailureStatus } from '../../media/failure.ts'
import { makeProduced, toSource } from '../../media/files.ts'
import {
  bareRequest,
  getRequest,
  jsonRequest,
  omitUndefined,
  pathPart,
  throwNotServed,
} from '../../media/request.ts'
import { arkRefusal, chooseArkCode } from './failure.ts'

const TASKS = '/contents/generations/tasks'
/** The role that every video of a request must have. */
const VIDEO_ROLE = 'reference_video'

function toArkPart(part: VideoPart, resolveUrl: MediaSubmit['resolveUrl']): Record<string, unknown> {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'image':
      return omitUndefined({ type: 'image_url', image_url: { url: resolveUrl(part.file) }, role: part.role })
    case 'video':
      return { type: 'video_url', video_url: { url: resolveUrl(part.file) }, role: part.role ?? VIDEO_ROLE }
  }
}

const makeBody = (job: JobOf<'video'>, model: string, resolveUrl: MediaSubmit['resolveUrl']): unknown =>
  omitUndefined({
    model,
    content: job.content.map((part) => toArkPart(part, resolveUrl)),
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
  if (!isSuccess(answer)) return arkRefusal(answer, readAsyncRefusal(answer))
  const body = readFields(answer)
  if (body === null) return makeUnknown('The answer is no JSON object.')
  const { id, status } = submitted.parse(body)
  if (id !== null) return makeAccepted(id, status ?? 'queued', 'running')
  if (!body.error) return makeUnknown('The answer names no task.')
  return makeRefused(
    findMediaFailureStatus(chooseArkCode(readCode(body.error))),
    readMessage(body, 'The upstream refused.'),
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

const readCode = (error: unknown): string => {
  const code = toFields(error)?.code
  return typeof code === 'string' ? code : ''
}

/** Returns the length: the upstream reports either it, or frames and their number per second. */
const readSeconds = ({ duration, frames, framespersecond }: Task): number | null =>
  duration ?? (frames !== null && framespersecond !== null ? frames / framespersecond : null)

function readDelivered(body: Task): PollOutcome {
  const source = toSource(body.content.video_url)
  const upstreamState = 'succeeded'
  const message = 'The upstream finished the task and named no video.'
  if (source === null) return { type: 'failed', upstreamState, code: 'generation_failed', message }
  const seconds = readSeconds(body)
  const input_seconds = body.input_video_duration
  return {
    ...makeProduced([{ role: 'video', source, facts: { seconds } }], {
      seconds,
      input_seconds,
      variant: body.resolution,
    }),
    upstreamState,
  }
}

function readPoll(answer: MediaAnswer): PollOutcome {
  const body = isSuccess(answer) ? readFields(answer) : null
  if (body === null) return pollError(answer)
  const read = task.parse(body)
  return chooseOutcome(answer, read.status, {
    queued: 'queued',
    running: 'running',
    cancelled: 'cancelled',
    expired: 'lapsed',
    succeeded: () => readDelivered(read),
    failed(upstreamState) {
      const code = chooseArkCode(readCode(body.error))
      return {
        type: 'failed',
        upstreamState,
        code,
        message: readMessage(body.error, 'The generation failed.'),
      }
    },
  })
}

export const arkVideo: MediaAdapter = {
  baseUrl: { end: '/api/v3', appended: '/contents/generations/tasks' },
  works: ['video'],
  inlines: true,
  submit(channel, { job, upstreamModel, resolveUrl }) {
    return job.work === 'video'
      ? jsonRequest(channel, TASKS, makeBody(job, upstreamModel, resolveUrl))
      : throwNotServed(job)
  },
  readSubmit,
  follow: {
    poll: (channel, { upstreamId }) => getRequest(channel, `${TASKS}/${pathPart(upstreamId)}`),
    readPoll,
    // Of a queued task this cancels, of a running one it is refused; of one that is over it deletes the record, which
    // is why it is sent only for queued tasks.
    cancel: (channel, { upstreamId }) => bareRequest(channel, 'DELETE', `${TASKS}/${pathPart(upstreamId)}`),
  },
}
