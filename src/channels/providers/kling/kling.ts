/**
 * Kling: videos from words or from frames, and images. A job has its own path by its kind, and an id of ours by which it is
 * found again. In China the host is `api-beijing.klingai.com`.
 */
import { z } from 'zod'
import { listFurtherFields } from '../../../../schemas/media/images.ts'
import type { JobOf, MediaJob } from '../../../../schemas/media/job.ts'
import type {
  MediaAdapter,
  MediaAnswer,
  MediaSubmit,
  PollOutcome,
  SubmitOutcome,
} from '../../media/adapter.ts'
import {
  anything,
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
  makeRefused,
  makeUnknown,
  markUsedUp,
  PAYMENT_REQUIRED,
  pollError,
  readAsyncRefusal,
  readFields,
  readMessage,
} from '../../media/answer.ts'
import type { MediaFailureCode } from '../../media/failure.ts'
import { makeProduced, toDelivered, toSource } from '../../media/files.ts'
import { findNearestRatio, parseSides } from '../../media/ratio.ts'
import { getRequest, jsonRequest, omitUndefined, pathPart, throwNotServed } from '../../media/request.ts'
import { sortVideoParts } from '../../media/video-parts.ts'
import type { Provider } from '../provider.ts'

type ResolveUrl = MediaSubmit['resolveUrl']
type ImageJob = JobOf<'image' | 'image_edit'>

const IMAGES = '/images/generations'
const RATIOS = ['16:9', '9:16', '1:1', '4:3', '3:4', '3:2', '2:3', '21:9']
/** From here on an image is of the larger of the two resolutions. */
const LARGE_IMAGE_PIXELS = 1536
/** Grades of videos by their resolutions. */
const MODES: Readonly<Record<string, string>> = { '720p': 'std', '1080p': 'pro' }

/** Returns the path: a job with frames is of another kind than one with only words. */
function choosePath(job: MediaJob): string {
  if (job.work !== 'video') return IMAGES
  const { firstFrame, lastFrame } = sortVideoParts(job)
  return firstFrame === null && lastFrame === null ? '/videos/text2video' : '/videos/image2video'
}

/** Returns a link, or bytes in base64 without the head of a data URI. */
const stripDataPrefix = (text: string): string => text.replace(/^data:[^,]*,/, '')

function makeVideoBody(job: JobOf<'video'>, resolveUrl: ResolveUrl): Record<string, unknown> {
  const { prompt, firstFrame, lastFrame } = sortVideoParts(job)
  const mode = job.resolution === null ? null : (MODES[job.resolution.toLowerCase()] ?? job.resolution)
  return {
    prompt,
    image: firstFrame && stripDataPrefix(resolveUrl(firstFrame)),
    image_tail: lastFrame && stripDataPrefix(resolveUrl(lastFrame)),
    mode,
    duration: job.duration === null ? null : String(job.duration),
    aspect_ratio: job.ratio,
    sound: job.generate_audio === null ? null : job.generate_audio ? 'on' : 'off',
    watermark_info: job.watermark === null ? null : { enabled: job.watermark },
  }
}

function makeImageBody(
  { prompt, n, size, images, extra }: ImageJob,
  resolveUrl: ResolveUrl,
): Record<string, unknown> {
  const sides = parseSides(size)
  const isLarge = sides !== null && Math.max(...sides) >= LARGE_IMAGE_PIXELS
  const [image] = images
  return {
    negative_prompt: listFurtherFields(extra).negative_prompt,
    prompt,
    n,
    image: image && stripDataPrefix(resolveUrl(image)),
    aspect_ratio: findNearestRatio(size, RATIOS),
    resolution: isLarge ? '2k' : null,
  }
}

const envelope = z.looseObject({ code: looseNumber, data: anything })
const submitted = z.looseObject({ task_id: looseId, task_status: looseWord })

/** The operator's account: in arrears, without a resource pack, or asked from an address that is not on its list. */
const isAboutAccount = (code: number): boolean => (code >= 1100 && code <= 1103) || code === 1304

/** Statuses by codes in the body of a 200: 1300 and 1301 are about content, 1302 and 1303 about the rate. */
function chooseStatus(code: number): number {
  if (code >= 1000 && code <= 1004) return 401
  if (isAboutAccount(code)) return PAYMENT_REQUIRED
  if (code === 1302 || code === 1303) return 429
  return code >= 1200 && code < 5000 ? 400 : 500
}

function accepted(data: unknown): SubmitOutcome | null {
  const { task_id = null, task_status } = submitted.safeParse(data).data ?? {}
  return task_id === null ? null : makeAccepted(task_id, task_status ?? 'submitted', 'processing')
}

/** Reads a refusal. One about the account comes with the 429 of one about the rate. */
function readRefusal(answer: MediaAnswer): SubmitOutcome {
  const { code } = envelope.parse(readFields(answer) ?? {})
  return markUsedUp(code !== null && isAboutAccount(code), readAsyncRefusal(answer))
}

function readSubmit(answer: MediaAnswer): SubmitOutcome {
  if (!isSuccess(answer)) return readRefusal(answer)
  const body = readFields(answer)
  if (body === null) return makeUnknown('The answer is no JSON object.')
  const { code, data } = envelope.parse(body)
  if (code !== null && code !== 0)
    return makeRefused(chooseStatus(code), readMessage(body, 'The upstream refused.'))
  return accepted(data) ?? makeUnknown('The answer names no task.')
}

/** Reads the answer to a query for an unconfirmed task. "Not found" is no proof: the task may appear later, so the query repeats. */
function readFound(answer: MediaAnswer): SubmitOutcome {
  const body = readFields(answer)
  const { code, data } = envelope.parse(body ?? {})
  const found = isSuccess(answer) && code === 0 ? accepted(data) : null
  return found ?? makeUnknown(readMessage(body, `status ${answer.status}`))
}

const file = z.looseObject({ url: looseText, duration: looseSeconds })
const result = z.looseObject({
  videos: looseList,
  images: looseList,
})
const task = z.looseObject({ task_status: looseWord, task_status_msg: looseText, task_result: anything })

function made(task_result: unknown, { work }: MediaJob): PollOutcome | null {
  const read = result.safeParse(task_result).data
  const items = work === 'video' ? read?.videos.slice(0, 1) : read?.images
  const role = work === 'video' ? 'video' : 'image'
  const files = (items ?? []).flatMap((item) => {
    const { url = null, duration = null } = file.safeParse(item).data ?? {}
    return toDelivered(role, toSource(url), { seconds: duration })
  })
  const [first] = files
  if (first === undefined) return null
  const seconds = work === 'video' ? (first.facts.seconds ?? null) : null
  return { ...makeProduced(files, { seconds }), upstreamState: 'succeed' }
}

const POLICY = /risk|sensitiv|polic|safety|violat|moderat/i
const INVALID = /invalid|format|resolution|dimension|unsupported|too (?:small|large)/i

function chooseCode(message: string): MediaFailureCode {
  if (POLICY.test(message)) return 'content_policy'
  if (/time ?out|timed out/i.test(message)) return 'timeout'
  return INVALID.test(message) ? 'invalid_input' : 'generation_failed'
}

function readPoll(answer: MediaAnswer, job: MediaJob): PollOutcome {
  const body = isSuccess(answer) ? readFields(answer) : null
  const { code, data } = envelope.parse(body ?? {})
  const read = task.safeParse(data).data
  const upstreamState = read?.task_status ?? null
  if (code !== 0 || read === undefined || upstreamState === null) return pollError(answer)
  const failed = (otherwise: string): PollOutcome => {
    const message = clipMessage(read.task_status_msg ?? otherwise)
    return { type: 'failed', upstreamState, code: chooseCode(message), message }
  }
  return chooseOutcome(answer, upstreamState, {
    submitted: 'queued',
    processing: 'running',
    succeed: () =>
      made(read.task_result, job) ?? failed('The upstream finished the task and named no file of it.'),
    failed: () => failed('The task failed.'),
  })
}

const media: MediaAdapter = {
  baseUrl: { end: '/v1', appended: '' },
  works: ['image', 'video'],
  inlines: true,
  submit(channel, { job, upstreamModel, reference, resolveUrl }) {
    if (job.work !== 'video' && job.work !== 'image') return throwNotServed(job)
    const body = job.work === 'video' ? makeVideoBody(job, resolveUrl) : makeImageBody(job, resolveUrl)
    return jsonRequest(
      channel,
      choosePath(job),
      omitUndefined({ model_name: upstreamModel, ...body, external_task_id: reference }),
    )
  },
  readSubmit,
  follow: {
    poll: (channel, { upstreamId, job }) => getRequest(channel, `${choosePath(job)}/${pathPart(upstreamId)}`),
    readPoll: (answer, { job }) => readPoll(answer, job),
    find: {
      request: (channel, reference, job) => getRequest(channel, `${choosePath(job)}/${pathPart(reference)}`),
      read: readFound,
    },
  },
}

export const kling: Provider = {
  title: 'Kling',
  baseUrls: { kling: 'https://api-singapore.klingai.com/v1' },
  media: { kling: media },
}
