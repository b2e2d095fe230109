/** Videos by MiniMax. A finished task names a file id; a second request returns the link to the file. */
import { z } from 'zod'
import type { ChannelEntry } from '../../../../schemas/config/catalog.ts'
import type { JobOf } from '../../../../schemas/media/job.ts'
import type {
  MediaAdapter,
  MediaAnswer,
  MediaSubmit,
  PollOutcome,
  PollState,
  SubmitOutcome,
} from '../../media/adapter.ts'
import {
  chooseOutcome,
  isSuccess,
  looseId,
  loosePixels,
  looseText,
  looseWord,
  makeAccepted,
  makeUnknown,
  pollError,
  readAsyncRefusal,
  readFields,
} from '../../media/answer.ts'
import { type FileFacts, makeProduced, toSource } from '../../media/files.ts'
import { getRequest, jsonRequest, omitUndefined, throwNotServed } from '../../media/request.ts'
import { sortVideoParts } from '../../media/video-parts.ts'
import { minimaxFailure, minimaxFailureCode, minimaxRefusal } from './failure.ts'

function makeBody(
  job: JobOf<'video'>,
  model: string,
  resolveUrl: MediaSubmit['resolveUrl'],
): Record<string, unknown> {
  const { prompt, firstFrame, lastFrame, references } = sortVideoParts(job)
  const subject = references.map(resolveUrl)
  return omitUndefined({
    model,
    prompt,
    first_frame_image: firstFrame && resolveUrl(firstFrame),
    last_frame_image: lastFrame && resolveUrl(lastFrame),
    subject_reference: subject.length === 0 ? null : [{ type: 'character', image: subject }],
    duration: job.duration,
    resolution: job.resolution?.toUpperCase(),
    aigc_watermark: job.watermark,
  })
}

function readSubmit(answer: MediaAnswer): SubmitOutcome {
  if (!isSuccess(answer)) return readAsyncRefusal(answer)
  const failure = minimaxFailure(answer)
  if (failure !== null) return minimaxRefusal(failure)
  const id = looseId.parse(readFields(answer)?.task_id)
  if (id === null) return makeUnknown('The answer names no task.')
  return makeAccepted(id, 'Queueing')
}

const stored = z.looseObject({ download_url: looseText })

/** Reads the file of a finished task. Its link opens for nine hours; each request creates a new one. */
function readFile(answer: MediaAnswer, facts: FileFacts): PollState {
  const failure = minimaxFailure(answer)
  const file = isSuccess(answer) && failure === null ? readFields(answer)?.file : undefined
  const source = toSource(stored.safeParse(file).data?.download_url ?? null)
  if (source !== null)
    return { ...makeProduced([{ role: 'video', source, facts }]), upstreamState: 'Success' }
  return failure === null ? pollError(answer) : { type: 'error', reason: failure.message }
}

const task = z.looseObject({
  status: looseWord,
  file_id: looseId,
  video_width: loosePixels,
  video_height: loosePixels,
})

function readPoll(answer: MediaAnswer): PollOutcome {
  const body = isSuccess(answer) ? readFields(answer) : null
  const { status: upstreamState, file_id, video_width, video_height } = task.parse(body ?? {})
  const failure = minimaxFailure(answer)
  if (upstreamState === null && failure !== null) return { type: 'error', reason: failure.message }
  switch (upstreamState) {
    case 'Success': {
      const message = 'The upstream finished the task and named no file.'
      if (file_id === null) return { type: 'failed', upstreamState, code: 'generation_failed', message }
      const path = `/files/retrieve?file_id=${encodeURIComponent(file_id)}`
      const facts = { width: video_width, height: video_height }
      return {
        type: 'finished',
        upstreamState,
        result: {
          request: (channel: ChannelEntry) => getRequest(channel, path),
          read: (file) => readFile(file, facts),
        },
      }
    }
    case 'Fail': {
      const code = minimaxFailureCode(failure?.code ?? null)
      return { type: 'failed', upstreamState, code, message: failure?.message ?? 'The task failed.' }
    }
    default:
      return chooseOutcome(answer, upstreamState, {
        Preparing: 'queued',
        Queueing: 'queued',
        Processing: 'running',
      })
  }
}

export const minimaxVideo: MediaAdapter = {
  baseUrl: { end: '/v1', appended: '/video_generation' },
  works: ['video'],
  inlines: true,
  fixesSound: () => true,
  submit(channel, { job, upstreamModel, resolveUrl }) {
    return job.work === 'video'
      ? jsonRequest(channel, '/video_generation', makeBody(job, upstreamModel, resolveUrl))
      : throwNotServed(job)
  },
  readSubmit,
  follow: {
    poll: (channel, { upstreamId }) =>
      getRequest(channel, `/query/video_generation?task_id=${encodeURIComponent(upstreamId)}`),
    readPoll,
  },
}
