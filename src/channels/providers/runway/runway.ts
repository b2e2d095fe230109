/** Runway: tasks that make videos from words, frames and videos, and images from words and references. */
import { z } from 'zod'
import { listFurtherFields } from '../../../../schemas/media/images.ts'
import type { JobOf, MediaJob } from '../../../../schemas/media/job.ts'
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
  clipMessage,
  isSuccess,
  looseId,
  looseText,
  looseWord,
  makeAccepted,
  makeUnknown,
  markUsedUp,
  readAsyncRefusal,
  readFields,
} from '../../media/answer.ts'
import type { MediaFailureCode } from '../../media/failure.ts'
import { makeProduced, toDelivered, toSource } from '../../media/files.ts'
import { findNearestRatio } from '../../media/ratio.ts'
import {
  bareRequest,
  getRequest,
  jsonRequest,
  omitUndefined,
  pathPart,
  throwNotServed,
} from '../../media/request.ts'
import { sortVideoParts } from '../../media/video-parts.ts'
import type { Provider } from '../provider.ts'

type ResolveUrl = MediaSubmit['resolveUrl']
type RequestParts = readonly [path: string, fields: Record<string, unknown>]

const headers = { 'x-runway-version': '2024-11-06' }

/** Sizes of videos: a ratio is written in pixels. */
const VIDEOS = ['1280:720', '720:1280', '1104:832', '832:1104', '960:960', '1584:672']
/** Those of Veo, the only model that makes 1080p. */
const VEO_VIDEOS = ['1280:720', '720:1280']
const LARGE_VIDEOS = ['1920:1080', '1080:1920']
const GEN3_VIDEOS = ['1280:768', '768:1280']
const IMAGES = [
  '1920:1080',
  '1080:1920',
  '1024:1024',
  '1360:768',
  '1080:1080',
  '1168:880',
  '1440:1080',
  '1080:1440',
  '1808:768',
  '2112:912',
  '1280:720',
  '720:1280',
  '720:720',
  '960:720',
  '720:960',
  '1680:720',
]
const PIXELS = /^\d{3,4}:\d{3,4}$/
const DEFAULT_RATIO = '16:9'

function listSizes(model: string, resolution: string | null): readonly string[] {
  if (resolution?.toLowerCase() === '1080p') return LARGE_VIDEOS
  if (model.startsWith('gen3')) return GEN3_VIDEOS
  return model.startsWith('veo') ? VEO_VIDEOS : VIDEOS
}

/** Returns a ratio in pixels: as it is given, else the nearest one of this model and resolution. */
function chooseRatio({ ratio, resolution }: JobOf<'video'>, model: string): string | null {
  if (ratio !== null && PIXELS.test(ratio)) return ratio
  return findNearestRatio(ratio ?? DEFAULT_RATIO, listSizes(model, resolution))
}

function makeVideoRequest(job: JobOf<'video'>, model: string, resolveUrl: ResolveUrl): RequestParts {
  const { prompt, firstFrame, lastFrame, references, videos } = sortVideoParts(job)
  const common = { promptText: prompt, ratio: chooseRatio(job, model), seed: job.seed }
  const timed = { ...common, duration: job.duration, audio: job.generate_audio }
  const [video] = videos
  if (video !== undefined) {
    const shown = references.map((file) => ({ type: 'image', uri: resolveUrl(file) }))
    return [
      '/video_to_video',
      { ...common, videoUri: resolveUrl(video), references: shown.length === 0 ? null : shown },
    ]
  }
  const frames = [
    firstFrame && { uri: resolveUrl(firstFrame), position: 'first' },
    lastFrame && { uri: resolveUrl(lastFrame), position: 'last' },
  ].filter((frame) => frame !== null)
  if (frames.length === 0) return ['/text_to_video', timed]
  const promptText = prompt === '' ? null : prompt
  return ['/image_to_video', { ...timed, promptText, promptImage: frames }]
}

function makeImageRequest(
  { prompt, size, images, extra }: JobOf<'image' | 'image_edit'>,
  resolveUrl: ResolveUrl,
): RequestParts {
  const referenceImages = images.map((file, index) => ({ uri: resolveUrl(file), tag: `image${index + 1}` }))
  const exact = size?.replace(/[x*]/i, ':') ?? null
  const ratio = exact !== null && IMAGES.includes(exact) ? exact : findNearestRatio(size, IMAGES)
  return [
    '/text_to_image',
    {
      promptText: prompt,
      ratio: ratio ?? IMAGES[0],
      seed: listFurtherFields(extra).seed,
      referenceImages: referenceImages.length === 0 ? null : referenceImages,
    },
  ]
}

/** An account without credits is refused with 400, and has no code. */
const NO_CREDITS = /^You do not have enough credits/i

function readRefusal(answer: MediaAnswer): SubmitOutcome {
  const outcome = readAsyncRefusal(answer)
  return markUsedUp(outcome.type === 'refused' && NO_CREDITS.test(outcome.message), outcome)
}

function readSubmit(answer: MediaAnswer): SubmitOutcome {
  if (!isSuccess(answer)) return readRefusal(answer)
  const id = looseId.parse(readFields(answer)?.id)
  if (id === null) return makeUnknown('The answer names no task.')
  return makeAccepted(id, 'PENDING')
}

const task = z.looseObject({
  status: looseWord,
  output: z.array(looseText).catch([]).default([]),
  failure: looseText,
  failureCode: looseWord,
})

function readMade(links: readonly (string | null)[], { work }: MediaJob): PollState | null {
  const role = work === 'video' ? 'video' : 'image'
  const files = links.flatMap((link) => toDelivered(role, toSource(link)))
  if (files.length === 0) return null
  return { ...makeProduced(work === 'video' ? files.slice(0, 1) : files), upstreamState: 'SUCCEEDED' }
}

function chooseCode(code: string): MediaFailureCode {
  if (/SAFETY|MODERATION/i.test(code)) return 'content_policy'
  if (/^ASSET|INVALID/i.test(code)) return 'invalid_input'
  return 'generation_failed'
}

function readPoll(answer: MediaAnswer, job: MediaJob): PollOutcome {
  const body = isSuccess(answer) ? readFields(answer) : null
  const { status: upstreamState, output, failure, failureCode } = task.parse(body ?? {})
  switch (upstreamState) {
    case 'SUCCEEDED': {
      const message = 'The upstream finished the task and named no file.'
      return readMade(output, job) ?? { type: 'failed', upstreamState, code: 'generation_failed', message }
    }
    case 'FAILED': {
      const message = clipMessage(failure ?? 'The task failed.')
      return { type: 'failed', upstreamState, code: chooseCode(failureCode ?? ''), message }
    }
    default:
      return chooseOutcome(answer, upstreamState, {
        PENDING: 'queued',
        THROTTLED: 'queued',
        RUNNING: 'running',
        CANCELLED: 'cancelled',
      })
  }
}

/** A video that is made from a video has its length and its sound. */
const isFromVideo = (job: MediaJob): boolean => job.work === 'video' && sortVideoParts(job).videos.length > 0

const media: MediaAdapter = {
  baseUrl: { end: '/v1', appended: '/tasks' },
  works: ['image', 'image_edit', 'video'],
  inlines: true,
  fixesLength: isFromVideo,
  fixesSound: (_, job) => isFromVideo(job),
  submit(channel, { job, upstreamModel, resolveUrl }) {
    if (job.work !== 'video' && job.work !== 'image' && job.work !== 'image_edit') return throwNotServed(job)
    const [path, fields] =
      job.work === 'video'
        ? makeVideoRequest(job, upstreamModel, resolveUrl)
        : makeImageRequest(job, resolveUrl)
    return jsonRequest(channel, path, omitUndefined({ model: upstreamModel, ...fields }), { headers })
  },
  readSubmit,
  follow: {
    poll: (channel, { upstreamId }) => getRequest(channel, `/tasks/${pathPart(upstreamId)}`, { headers }),
    readPoll: (answer, { job }) => readPoll(answer, job),
    // Of a finished task this deletes the record, which is why it is sent only for queued tasks.
    cancel: (channel, { upstreamId }) =>
      bareRequest(channel, 'DELETE', `/tasks/${pathPart(upstreamId)}`, { headers }),
  },
}

export const runway: Provider = {
  title: 'Runway',
  baseUrls: { runway: 'https://api.dev.runwayml.com/v1' },
  media: { runway: media },
}
