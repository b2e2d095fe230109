/** Jobs as DashScope takes them: each generation of models has its own service and its own fields. */
import { listFurtherFields } from '../../../../schemas/media/images.ts'
import type { JobOf, VideoPart } from '../../../../schemas/media/job.ts'
import type { MediaSubmit } from '../../media/adapter.ts'
import { findNearestRatio, parseSides } from '../../media/ratio.ts'
import { omitUndefined } from '../../media/request.ts'
import { sortVideoParts, type VideoParts } from '../../media/video-parts.ts'

type Fields = Record<string, unknown>
type ResolveUrl = MediaSubmit['resolveUrl']
type ImageJob = JobOf<'image' | 'image_edit'>

export interface Order {
  readonly path: string
  readonly body: Fields
}

const makeOrder = (service: string, model: string, input: Fields, parameters: Fields): Order => ({
  path: `/services/aigc/${service}`,
  body: { model, input: omitUndefined(input), parameters: omitUndefined(parameters) },
})

/** The sizes of a video by its lines and its ratio. */
const SIZES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '480P': { '16:9': '832*480', '9:16': '480*832', '1:1': '624*624' },
  '720P': {
    '16:9': '1280*720',
    '9:16': '720*1280',
    '1:1': '960*960',
    '4:3': '1088*832',
    '3:4': '832*1088',
  },
  '1080P': {
    '16:9': '1920*1080',
    '9:16': '1080*1920',
    '1:1': '1440*1440',
    '4:3': '1632*1248',
    '3:4': '1248*1632',
  },
}
const DEFAULT_RATIO = '16:9'
/** Wan up to 2.6: videos from words have a size there, later ones a resolution and a ratio. */
const WITH_SIZE = /^wanx|^wan2\.[0-6]/

/** Returns the size, or the fields that later models have for it. */
function chooseFrame({ resolution, ratio }: JobOf<'video'>, model: string, hasImage: boolean): Fields {
  const lines = resolution?.toUpperCase() ?? null
  if (hasImage || !WITH_SIZE.test(model)) return { resolution: lines, ratio: hasImage ? null : ratio }
  const sizes = lines === null ? undefined : SIZES[lines]
  if (sizes === undefined) return {}
  return { size: sizes[findNearestRatio(ratio ?? DEFAULT_RATIO, Object.keys(sizes)) ?? DEFAULT_RATIO] }
}

/** From Wan 2.7 on all that a video is made of is one list. */
const BY_MEDIA = /^wan(2\.[7-9]|[3-9])/

/** Returns what a video of the request is for: the beginning of the new one, the one that is edited, or a reference. */
function chooseVideoUse(model: string): string {
  if (model.includes('i2v')) return 'first_clip'
  return model.includes('videoedit') ? 'video' : 'reference_video'
}

const FIRST = /first|start/i

/** Returns what an image is for: a model of references takes it as a frame only by its role, one that edits never. */
function chooseImageUse(
  { file, role }: VideoPart & { type: 'image' },
  model: string,
  parts: VideoParts,
): string {
  if (model.includes('videoedit')) return 'reference_image'
  if (model.includes('r2v')) return FIRST.test(role ?? '') ? 'first_frame' : 'reference_image'
  if (file === parts.firstFrame) return 'first_frame'
  return file === parts.lastFrame ? 'last_frame' : 'reference_image'
}

export function makeVideoOrder(job: JobOf<'video'>, model: string, resolveUrl: ResolveUrl): Order {
  const parts = sortVideoParts(job)
  const { prompt } = parts
  // A prompt names them by their number: they keep the order of the request.
  const shown = job.content.flatMap((part) => {
    if (part.type === 'text') return []
    return [
      {
        type: part.type === 'image' ? chooseImageUse(part, model, parts) : chooseVideoUse(model),
        file: part.file,
      },
    ]
  })
  const findFile = (use: string) => shown.find(({ type }) => type === use)?.file ?? null
  const [firstFrame, lastFrame] = [findFile('first_frame'), findFile('last_frame')]
  const parameters = {
    ...chooseFrame(job, model, firstFrame !== null || lastFrame !== null),
    duration: job.duration,
    seed: job.seed,
    watermark: job.watermark,
    audio: job.generate_audio,
  }
  if (BY_MEDIA.test(model)) {
    const media = shown.map(({ type, file }) => ({ type, url: resolveUrl(file) }))
    const input = { prompt, media: media.length === 0 ? null : media }
    return makeOrder('video-generation/video-synthesis', model, input, parameters)
  }
  if (lastFrame !== null) {
    const frames = {
      prompt,
      first_frame_url: firstFrame && resolveUrl(firstFrame),
      last_frame_url: resolveUrl(lastFrame),
    }
    return makeOrder('image2video/video-synthesis', model, frames, parameters)
  }
  const reference = shown.filter(({ file }) => file !== firstFrame).map(({ file }) => resolveUrl(file))
  const input = {
    prompt,
    img_url: firstFrame && resolveUrl(firstFrame),
    reference_urls: reference.length === 0 ? null : reference,
  }
  return makeOrder('video-generation/video-synthesis', model, input, parameters)
}

/** From Wan 2.6 on images are made from messages. */
const BY_MESSAGES = /^wan(2\.[6-9]|[3-9])/

/** Sizes of images by their ratios, where each model of a family makes all of them. */
const IMAGE_SIZES = [
  [/^qwen/, ['1328*1328', '1664*928', '928*1664', '1472*1104', '1104*1472']],
  [/^wanx|^wan2\.[0-4]/, ['1280*1280', '1280*720', '720*1280', '1280*960', '960*1280']],
  [/^/, ['1280*1280', '1696*960', '960*1696', '1472*1104', '1104*1472']],
] as const

/** Returns a size in pixels, also for a ratio, which no model takes; what else a model calls a size stays as it is. */
function chooseImageSize(size: string | null, model: string): string | null {
  if (size === null || /^auto$/i.test(size)) return null
  const sides = parseSides(size)
  if (sides === null || !size.includes(':')) return sides?.join('*') ?? size
  return findNearestRatio(size, IMAGE_SIZES.find(([family]) => family.test(model))![1])
}

export function makeImageOrder(job: ImageJob, model: string, resolveUrl: ResolveUrl): Order {
  const { negative_prompt, seed, watermark } = listFurtherFields(job.extra)
  const parameters = { size: chooseImageSize(job.size, model), n: job.n, seed, watermark }
  const images = job.images.map(resolveUrl)
  if (BY_MESSAGES.test(model)) {
    const content = [{ text: job.prompt }, ...images.map((image) => ({ image }))]
    const input = { messages: [{ role: 'user', content }] }
    return makeOrder('image-generation/generation', model, input, { ...parameters, negative_prompt })
  }
  const input = { prompt: job.prompt, negative_prompt }
  if (images.length > 0)
    return makeOrder('image2image/image-synthesis', model, { ...input, images }, parameters)
  return makeOrder('text2image/image-synthesis', model, input, parameters)
}
