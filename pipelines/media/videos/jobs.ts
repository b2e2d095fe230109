/** Turns requests for videos into jobs, model by model. See docs/api-rules.md, "Digital humans" and "Videos". */
import { clipComposeRequest } from '../../../schemas/media/clips.ts'
import type { FileRef, JobOf, MediaJob, VideoPart } from '../../../schemas/media/job.ts'
import {
  avatarVideoRequest,
  lipsyncRequest,
  motionRequest,
  type VIDEO_WORKS,
  type VideoRequest,
  videoRequest,
} from '../../../schemas/media/videos.ts'
import { findMediaAdapter } from '../../../src/channels/media/registry.ts'
import { DEFAULT_VIDEO_SECONDS } from '../../../src/core/media/pricing.ts'
import { withoutSplitFlags, withoutVideoFlags } from '../../../src/core/media/prompt-flags.ts'
import { choosePricesBySound, isPricedBySound, makesSound } from '../../../src/core/media/sound.ts'
import { listVariants } from '../../../src/core/media/variants.ts'
import type { Model, Route } from '../../../src/core/routing/catalog.ts'
import { invalidField, readClientJson } from '../../../src/protocols/request/client-json.ts'
import { joinPlaces, readPlace } from '../../../src/protocols/request/contract-place.ts'
import type { Caller } from '../../calls/authenticate.ts'
import type { ChannelLists } from '../channel-lists.ts'
import { chooseVariant } from '../priced-job.ts'
import { type MediaResources, resolveMediaResource } from '../select-voice-or-avatar.ts'
import { buildComposeJob, type ClipSources, toFileRef } from './clip-job.ts'

export interface VideoSources extends MediaResources, ClipSources {
  readonly lists: ChannelLists
}

/** The client's request, and the channels that can make it. */
export interface VideoParams {
  readonly caller: Caller
  readonly body: unknown
  readonly entry: Model['entry']
  readonly routes: readonly Route[]
}

interface MadeJob {
  readonly job: MediaJob
  readonly routes: readonly Route[]
  /** A variant of the model; null or absent if it has one price. */
  readonly variant?: string | null
}

type MakeJob = (deps: VideoSources, asked: VideoParams) => MadeJob | Promise<MadeJob>

const toOptionalFileRef = (url: string | null | undefined): FileRef | null =>
  url == null ? null : toFileRef(url)

type Part = NonNullable<VideoRequest['content']>[number]

/** A text that has only flags is no prompt. */
function readText(text: string): VideoPart[] {
  const words = withoutVideoFlags(text)
  return words.trim() === '' ? [] : [{ type: 'text', text: words }]
}

function readParts(part: Part): VideoPart[] {
  switch (part.type) {
    case 'text':
      return readText(part.text)
    case 'image_url':
      return [{ type: 'image', file: toFileRef(part.image_url), role: part.role ?? null }]
    case 'video_url':
      return [{ type: 'video', file: toFileRef(part.video_url), role: part.role ?? null }]
  }
}

/** Returns the parts; all texts as one if a flag is split across them. */
function withoutSplit(parts: readonly VideoPart[]): VideoPart[] {
  const words = withoutSplitFlags(parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])))
  if (words === null) return [...parts]
  const others = parts.filter(({ type }) => type !== 'text')
  return words === '' ? others : [{ type: 'text', text: words }, ...others]
}

/** The upstream's resolution if neither the request nor the configuration names one. */
const DEFAULT_RESOLUTION = '720p'

/**
 * Returns the resolution that is priced; null if the model has one price.
 * @throws Failure `invalid_request` if the model has no price for such a video
 */
function chooseResolution(
  entry: Model['entry'],
  { resolution, generate_audio }: VideoRequest,
): string | null {
  if (entry.pricing?.with_audio === undefined) return chooseVariant(entry, 'resolution', resolution ?? null)
  const sound = makesSound(entry, generate_audio)
  const pricing = choosePricesBySound(entry.pricing, sound)
  if (pricing.per_unit === undefined && listVariants({ pricing }).length === 0)
    throw invalidField('generate_audio', 'the model has no price for a video with sound')
  const having = sound ? ' with sound' : ' without sound'
  return chooseVariant({ ...entry, pricing }, 'resolution', resolution ?? null, having)
}

/**
 * Returns the channels that make what is charged. A channel that takes no length or no sound makes what its model does
 * by default.
 * @throws Failure `invalid_request` if there is none
 */
function filterRoutes({ entry, routes }: VideoParams, job: JobOf<'video'>): readonly Route[] {
  const { default_duration = DEFAULT_VIDEO_SECONDS } = entry.videos ?? {}
  const timed = routes.filter(
    ({ protocol }) =>
      job.duration === default_duration || findMediaAdapter(protocol)?.fixesLength?.(job) !== true,
  )
  if (timed.length === 0)
    throw invalidField(
      'duration',
      `a video of such content lasts ${default_duration} seconds: leave the field out`,
    )
  const bySelf = makesSound(entry, null)
  if (makesSound(entry, job.generate_audio) === bySelf) return timed
  const able = timed.filter(
    ({ channel, protocol }) =>
      ![entry.pricing, channel.cost?.[entry.id]].some(isPricedBySound) ||
      findMediaAdapter(protocol)?.fixesSound?.(channel, job) !== true,
  )
  if (able.length === 0)
    throw invalidField(
      'generate_audio',
      `such a video is always made ${bySelf ? 'with' : 'without'} sound: leave the field out`,
    )
  return able
}

/** Length and resolution are always sent: hold and charge follow them, not the upstream's defaults. */
const video: MakeJob = (_, params) => {
  const { body, entry } = params
  const asked = readClientJson(videoRequest, body)
  const content = withoutSplit([...readText(asked.prompt ?? ''), ...(asked.content ?? []).flatMap(readParts)])
  if (content.length === 0)
    throw invalidField(
      'prompt',
      'it says nothing in words: flags such as --dur are removed, the fields of a request say the same',
    )
  const variant = chooseResolution(entry, asked)
  const { default_duration = DEFAULT_VIDEO_SECONDS, default_resolution } = entry.videos ?? {}
  const job: JobOf<'video'> = {
    work: 'video',
    content,
    duration: asked.duration ?? default_duration,
    resolution: variant ?? asked.resolution ?? default_resolution ?? DEFAULT_RESOLUTION,
    ratio: asked.ratio ?? null,
    seed: asked.seed ?? null,
    fps: asked.fps ?? null,
    watermark: asked.watermark ?? null,
    camera_fixed: asked.camera_fixed ?? null,
    generate_audio: asked.generate_audio ?? null,
  }
  return { routes: filterRoutes(params, job), variant, job }
}

const avatarVideo: MakeJob = async (deps, { caller, body, routes: all }) => {
  const { avatar, voice, text, audio_url, duration } = readClientJson(avatarVideoRequest, body)
  const face = await resolveMediaResource(deps, caller, 'avatar', {
    field: 'avatar',
    id: avatar,
    routes: all,
  })
  const facts = { work: 'avatar_video', avatar: face.upstreamId, duration } as const
  if (voice == null) {
    const job = { ...facts, audio: toOptionalFileRef(audio_url), voice: null, text: null }
    return { job, routes: face.routes }
  }
  const sound = await resolveMediaResource(deps, caller, 'voice', { field: 'voice', id: voice, routes: all })
  const routes = face.routes.filter((route) => sound.routes.includes(route))
  if (routes.length === 0) throw invalidField('voice', 'this avatar cannot speak with it')
  const job = { ...facts, audio: null, voice: sound.upstreamId, text: text ?? null }
  return { job, routes }
}

const lipsync: MakeJob = (_, { body, routes }) => {
  const { source_video_url, audio_url, duration } = readClientJson(lipsyncRequest, body)
  const source_video = toFileRef(source_video_url)
  return { job: { work: 'lipsync', source_video, audio: toFileRef(audio_url), duration }, routes }
}

const motion: MakeJob = (_, { body, entry, routes }) => {
  const asked = readClientJson(motionRequest, body)
  const resolution = asked.resolution ?? 'standard'
  const portraits = asked.content.map(({ image_url }) => toFileRef(image_url))
  return {
    routes,
    variant: chooseVariant(entry, 'resolution', resolution),
    job: {
      work: 'motion',
      source_video: toFileRef(asked.source_video_url),
      portraits,
      face_count: asked.face_count ?? portraits.length,
      resolution,
      duration: asked.duration,
    },
  }
}

export type VideoWork = 'video' | (typeof VIDEO_WORKS)[string]

export const VIDEO_JOBS: Readonly<Record<VideoWork, MakeJob>> = {
  video,
  avatar_video: avatarVideo,
  lipsync,
  motion,
  clip_compose: buildComposeJob,
}
/** The fields of all these requests. */
export const VIDEO_BODY = joinPlaces(
  [videoRequest, avatarVideoRequest, lipsyncRequest, motionRequest, clipComposeRequest].map(readPlace),
)
