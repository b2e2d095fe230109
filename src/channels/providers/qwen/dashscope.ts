/** DashScope, the interface of Model Studio: tasks that make images and videos of Wan and Qwen. */
import { z } from 'zod'
import type { MediaJob } from '../../../../schemas/media/job.ts'
import type { MediaAdapter, MediaAnswer, PollOutcome, PollState, SubmitOutcome } from '../../media/adapter.ts'
import {
  chooseOutcome,
  clipMessage,
  isSuccess,
  looseId,
  looseList,
  looseNumber,
  looseSeconds,
  looseText,
  looseWord,
  makeAccepted,
  makeUnknown,
  markUsedUp,
  pollError,
  readAsyncRefusal,
  readFields,
} from '../../media/answer.ts'
import type { MediaFailureCode } from '../../media/failure.ts'
import { makeProduced, toDelivered, toSource } from '../../media/files.ts'
import { bareRequest, getRequest, jsonRequest, pathPart, throwNotServed } from '../../media/request.ts'
import { makeImageOrder, makeVideoOrder, type Order } from './dashscope-input.ts'

const submitted = z.looseObject({ task_id: looseId, task_status: looseWord })

/** An account with an overdue payment is refused with 400. */
const OVERDUE = 'Arrearage'

const readRefusal = (answer: MediaAnswer): SubmitOutcome =>
  markUsedUp(readFields(answer)?.code === OVERDUE, readAsyncRefusal(answer))

function readSubmit(answer: MediaAnswer): SubmitOutcome {
  if (!isSuccess(answer)) return readRefusal(answer)
  const { task_id = null, task_status } = submitted.safeParse(readFields(answer)?.output).data ?? {}
  if (task_id === null) return makeUnknown('The answer names no task.')
  return makeAccepted(task_id, task_status ?? 'PENDING', 'RUNNING')
}

const output = z.looseObject({
  task_status: looseWord,
  code: looseWord,
  message: looseText,
  video_url: looseText,
  results: looseList,
  choices: looseList,
})
type Output = z.infer<typeof output>

const usage = z.looseObject({
  output_video_duration: looseSeconds,
  video_duration: looseSeconds,
  duration: looseSeconds,
  input_video_duration: looseSeconds,
  SR: looseNumber,
})

function readVideo({ video_url }: Output, measured: unknown): PollState | null {
  const source = toSource(video_url)
  if (source === null) return null
  const read = usage.safeParse(measured).data
  const seconds = read?.output_video_duration ?? read?.video_duration ?? read?.duration ?? null
  const lines = read?.SR ?? null
  const rest = {
    seconds,
    input_seconds: read?.input_video_duration ?? null,
    variant: lines === null ? null : `${lines}p`,
  }
  return {
    ...makeProduced([{ role: 'video', source, facts: { seconds } }], rest),
    upstreamState: 'SUCCEEDED',
  }
}

const choice = z.looseObject({ message: z.looseObject({ content: looseList }) })
const image = z.looseObject({ url: looseText, image: looseText })

/** Returns the images. Those that failed have a code in place of a link, and are not charged. */
function readImages({ results, choices }: Output): PollState | null {
  const contents = choices.flatMap((each) => choice.safeParse(each).data?.message.content ?? [])
  const images = [...results, ...contents].flatMap((item) => {
    const read = image.safeParse(item).data
    return toDelivered('image', toSource(read?.url ?? read?.image ?? null))
  })
  return images.length === 0 ? null : { ...makeProduced(images), upstreamState: 'SUCCEEDED' }
}

const POLICY = /DataInspection|IPInfringement|Inappropriate|Sensitive|Policy/i
const INVALID = /^Invalid|BadRequest|FileSize|Format|Resolution/i
const LIMITED = /Throttling|Quota|Arrearage|AllocationQuota/i

function chooseCode(code: string): MediaFailureCode {
  if (POLICY.test(code)) return 'content_policy'
  if (/InvalidURL|DataNotAccessible|Download/i.test(code)) return 'source_unreachable'
  if (INVALID.test(code)) return 'invalid_input'
  if (LIMITED.test(code)) return 'quota_exhausted'
  return /timeout/i.test(code) ? 'timeout' : 'generation_failed'
}

function readPoll(answer: MediaAnswer, { work }: MediaJob): PollOutcome {
  const body = isSuccess(answer) ? readFields(answer) : null
  const read = output.safeParse(body?.output).data
  const upstreamState = read?.task_status ?? null
  if (read === undefined || upstreamState === null) return pollError(answer)
  const makeFailed = (otherwise: string): PollState => {
    const message = clipMessage(read.message ?? otherwise)
    return { type: 'failed', upstreamState, code: chooseCode(read.code ?? ''), message }
  }
  switch (upstreamState) {
    case 'SUCCEEDED': {
      const made = work === 'video' ? readVideo(read, body?.usage) : readImages(read)
      return made ?? makeFailed('The upstream finished the task and named no file.')
    }
    case 'FAILED':
      return makeFailed('The task failed.')
    // The task does not exist, or no longer: its record is deleted a day after its end.
    case 'UNKNOWN':
      return { type: 'error', reason: 'The upstream does not know the task.' }
    default:
      return chooseOutcome(answer, upstreamState, {
        PENDING: 'queued',
        RUNNING: 'running',
        SUSPENDED: 'running',
        CANCELED: 'cancelled',
      })
  }
}

const ASYNC = { 'x-dashscope-async': 'enable' }

function chooseOrder({ job, upstreamModel, resolveUrl }: Parameters<MediaAdapter['submit']>[1]): Order {
  if (job.work === 'video') return makeVideoOrder(job, upstreamModel, resolveUrl)
  return job.work === 'image' || job.work === 'image_edit'
    ? makeImageOrder(job, upstreamModel, resolveUrl)
    : throwNotServed(job)
}

export const dashscope: MediaAdapter = {
  baseUrl: { end: '/api/v1', appended: '/services/aigc' },
  works: ['image', 'image_edit', 'video'],
  inlines: true,
  submit(channel, submit) {
    const { path, body } = chooseOrder(submit)
    return jsonRequest(channel, path, body, { headers: ASYNC })
  },
  readSubmit,
  follow: {
    poll: (channel, { upstreamId }) => getRequest(channel, `/tasks/${pathPart(upstreamId)}`),
    readPoll: (answer, { job }) => readPoll(answer, job),
    cancel: (channel, { upstreamId }) =>
      bareRequest(channel, 'POST', `/tasks/${pathPart(upstreamId)}/cancel`),
  },
}
