/** fal: every model by its path, through the queue. A finished request has its result at a second address. */
import { z } from 'zod'
import type { ChannelEntry } from '../../../../schemas/config/catalog.ts'
import type { MediaJob } from '../../../../schemas/media/job.ts'
import type { MediaAdapter, MediaAnswer, PollOutcome, PollState, SubmitOutcome } from '../../media/adapter.ts'
import {
  chooseOutcome,
  isSuccess,
  looseId,
  loosePixels,
  looseSeconds,
  looseText,
  looseWord,
  makeAccepted,
  makeUnknown,
  markUsedUp,
  pollError,
  readAsyncRefusal,
  readFields,
  readMessage,
} from '../../media/answer.ts'
import type { MediaFailureCode } from '../../media/failure.ts'
import { makeProduced, toDelivered, toSource } from '../../media/files.ts'
import { type Host, leavesSoundOut, makeJobInput } from '../../media/hosted-input.ts'
import {
  bareRequest,
  getRequest,
  jsonRequest,
  type KeyHeader,
  pathParts,
  throwNotServed,
} from '../../media/request.ts'
import type { Provider } from '../provider.ts'

const key: KeyHeader = (channel) => [['authorization', `Key ${channel.api_key}`]]

/** Models that take a length with its unit, and those that take it as a number; others take digits in a text. */
const WITH_UNIT = /veo|luma/i
const AS_NUMBER = /sora|ltx/i

const host: Host = {
  names: {
    image: 'image_url',
    images: 'image_urls[]',
    last_frame: 'end_image_url',
    mask: 'mask_url',
    video: 'video_url',
    n: 'num_images',
    size: 'image_size',
    ratio: 'aspect_ratio',
  },
  pixels: (width, height) => ({ image_size: { width, height } }),
  duration(seconds, model) {
    if (AS_NUMBER.test(model)) return seconds
    return WITH_UNIT.test(model) ? `${seconds}s` : String(seconds)
  },
}

/** Requests are at the application, the first two parts of a model's path, whatever comes behind them. */
const makeRequestPath = (model: string, id: string): string =>
  `/${pathParts(model.split('/').slice(0, 2).join('/'))}/requests/${pathParts(id)}`

const submitted = z.looseObject({ request_id: looseId, status: looseWord })

/** An account without credit is refused with 403, and has no code. */
const LOCKED = /^User is locked/i

function readRefusal(answer: MediaAnswer): SubmitOutcome {
  const outcome = readAsyncRefusal(answer)
  return markUsedUp(outcome.type === 'refused' && LOCKED.test(outcome.message), outcome)
}

function readSubmit(answer: MediaAnswer): SubmitOutcome {
  if (!isSuccess(answer)) return readRefusal(answer)
  const body = readFields(answer)
  if (body === null) return makeUnknown('The answer is no JSON object.')
  const { request_id, status } = submitted.parse(body)
  if (request_id === null) return makeUnknown('The answer names no request.')
  return makeAccepted(request_id, status ?? 'IN_QUEUE', 'IN_PROGRESS')
}

const file = z.looseObject({
  url: looseText,
  width: loosePixels,
  height: loosePixels,
  duration: looseSeconds,
  num_frames: looseSeconds,
  fps: looseSeconds,
})
type UpstreamFile = z.infer<typeof file>

const readSeconds = ({ duration, num_frames, fps }: UpstreamFile): number | null =>
  duration ?? (num_frames !== null && fps !== null ? num_frames / fps : null)

/** Returns the files under these names, each of which holds one or a list. */
function listFiles(
  body: Readonly<Record<string, unknown>>,
  names: readonly string[],
): readonly UpstreamFile[] {
  const items = names.flatMap((name) => body[name] ?? [])
  return items.flatMap((item) => file.safeParse(typeof item === 'string' ? { url: item } : item).data ?? [])
}

function readImages(body: Readonly<Record<string, unknown>>): PollState | null {
  const images = listFiles(body, ['images', 'image']).flatMap(({ url, width, height }) =>
    toDelivered('image', toSource(url), { width, height }),
  )
  return images.length === 0 ? null : { ...makeProduced(images), upstreamState: 'COMPLETED' }
}

const videoFacts = z.looseObject({ duration: looseSeconds, resolution: looseWord })

function readVideo(body: Readonly<Record<string, unknown>>): PollState | null {
  const made = listFiles(body, ['video', 'videos']).find(({ url }) => toSource(url) !== null)
  const source = toSource(made?.url ?? null)
  if (made === undefined || source === null) return null
  const { duration, resolution } = videoFacts.parse(body)
  const { width, height } = made
  const seconds = readSeconds(made) ?? duration
  const facts = { width, height, seconds }
  return {
    ...makeProduced([{ role: 'video', source, facts }], { seconds, variant: resolution }),
    upstreamState: 'COMPLETED',
  }
}

/** Types of errors that are not about the input. */
const CODES: Readonly<Record<string, MediaFailureCode>> = {
  content_policy_violation: 'content_policy',
  generation_timeout: 'timeout',
  request_timeout: 'timeout',
  startup_timeout: 'timeout',
  file_download_error: 'source_unreachable',
  internal_server_error: 'generation_failed',
  internal_error: 'generation_failed',
  downstream_service_error: 'generation_failed',
  downstream_service_unavailable: 'generation_failed',
}

const typed = z.looseObject({ type: looseWord })

function chooseCode(answer: MediaAnswer, body: Readonly<Record<string, unknown>> | null): MediaFailureCode {
  const [detail] = Array.isArray(body?.detail) ? (body.detail as unknown[]) : []
  const type = typed.safeParse(detail).data?.type ?? looseWord.parse(body?.error_type)
  if (type !== null && Object.hasOwn(CODES, type)) return CODES[type]!
  return answer.status === 400 || answer.status === 422 ? 'invalid_input' : 'generation_failed'
}

/** Statuses of the request for the result itself: the result may come later. */
const PASSING: ReadonlySet<number> = new Set([401, 403, 404, 408, 429])

/** Reads the result of a finished request. An error with a text is the end of the request, whatever its status. */
function readResult(answer: MediaAnswer, { work }: MediaJob, error: string | null): PollState {
  const body = readFields(answer)
  const upstreamState = 'COMPLETED'
  if (isSuccess(answer)) {
    const message = 'The upstream finished the request without its result.'
    const made = body === null ? null : work === 'video' ? readVideo(body) : readImages(body)
    return made ?? { type: 'failed', upstreamState, code: 'generation_failed', message }
  }
  const message = readMessage(body, error ?? '')
  const isOver = !PASSING.has(answer.status) && answer.status >= 400 && message !== ''
  return isOver || error !== null
    ? { type: 'failed', upstreamState, code: chooseCode(answer, body), message }
    : pollError(answer)
}

const status = z.looseObject({ status: looseWord, error: looseText })

function readPoll(answer: MediaAnswer, job: MediaJob, path: string): PollOutcome {
  const body = isSuccess(answer) ? readFields(answer) : null
  const { status: upstreamState, error } = status.parse(body ?? {})
  switch (upstreamState) {
    case 'COMPLETED':
      return {
        type: 'finished',
        upstreamState,
        result: {
          request: (channel: ChannelEntry) => getRequest(channel, path, { key }),
          read: (result) => readResult(result, job, error),
        },
      }
    default:
      return chooseOutcome(answer, upstreamState, { IN_QUEUE: 'queued', IN_PROGRESS: 'running' })
  }
}

const media: MediaAdapter = {
  baseUrl: { end: null, appended: '' },
  works: ['image', 'image_edit', 'video'],
  inlines: true,
  fixesSound: leavesSoundOut,
  submit(channel, submit) {
    const input = makeJobInput(channel, submit, host)
    if (input === null) return throwNotServed(submit.job)
    return jsonRequest(channel, `/${pathParts(submit.upstreamModel)}`, input, { key })
  },
  readSubmit,
  follow: {
    poll: (channel, { upstreamId, upstreamModel }) =>
      getRequest(channel, `${makeRequestPath(upstreamModel, upstreamId)}/status`, { key }),
    readPoll: (answer, { job, upstreamId, upstreamModel }) =>
      readPoll(answer, job, makeRequestPath(upstreamModel, upstreamId)),
    cancel: (channel, { upstreamId, upstreamModel }) =>
      bareRequest(channel, 'PUT', `${makeRequestPath(upstreamModel, upstreamId)}/cancel`, { key }),
  },
}

export const fal: Provider = {
  title: 'fal',
  baseUrls: { fal: 'https://queue.fal.run' },
  media: { fal: media },
}
