/**
 * The input of a model at a host of many models. Each model names its fields itself: a host has usual names, and
 * `input_names` of a channel replaces them. See docs/providers.md, "Hosts of many models".
 */
import type { ChannelEntry, InputName } from '../../../schemas/config/catalog.ts'
import { listFurtherFields } from '../../../schemas/media/images.ts'
import type { FileRef, JobOf } from '../../../schemas/media/job.ts'
import type { MediaSubmit } from './adapter.ts'
import { omitUndefined } from './request.ts'
import { sortVideoParts } from './video-parts.ts'

type ImageJob = JobOf<'image' | 'image_edit'>
type Input = Record<string, unknown>

export interface Host {
  /** Names that differ from ours. One that ends in `[]` makes a list; an empty one leaves the value out. */
  readonly names: Readonly<Partial<Record<InputName, string>>>
  /** Returns the fields of a size in pixels, unless the channel has a name for sizes. */
  readonly pixels: (width: number, height: number) => Input
  readonly duration: (seconds: number, model: string) => unknown
}

const PIXELS = /^(\d{1,5})[x*](\d{1,5})$/i
const RATIO = /^\d{1,4}:\d{1,4}$/

type Value = readonly [InputName, unknown]

function placeValue([name, value]: Value, { input_names }: ChannelEntry, { names }: Host): Input {
  const target = input_names[name] ?? names[name] ?? name
  if (value === null || value === undefined || target === '') return {}
  if (!target.endsWith('[]')) return { [target]: value }
  return { [target.slice(0, -2)]: Array.isArray(value) ? value : [value] }
}

const buildInput = (values: readonly Value[], channel: ChannelEntry, host: Host): Input =>
  Object.assign({}, ...values.map((value) => placeValue(value, channel, host)))

/** Returns one file under the name for one, several under the name for several. */
function placeImages(files: readonly FileRef[], resolveUrl: MediaSubmit['resolveUrl']): readonly Value[] {
  const [first, ...more] = files.map(resolveUrl)
  if (first === undefined) return []
  return [more.length === 0 ? ['image', first] : ['images', [first, ...more]]]
}

function placeSize(size: string | null, channel: ChannelEntry, host: Host): Input {
  if (size === null) return {}
  if (RATIO.test(size)) return placeValue(['ratio', size], channel, host)
  const [, width, height] = PIXELS.exec(size) ?? []
  if (width === undefined || channel.input_names.size !== undefined)
    return placeValue(['size', size], channel, host)
  return host.pixels(Number(width), Number(height))
}

function makeImageInput(
  channel: ChannelEntry,
  { resolveUrl }: Pick<MediaSubmit, 'resolveUrl'>,
  job: ImageJob,
  host: Host,
): Input {
  const mask = job.mask === null ? null : resolveUrl(job.mask)
  // Models that make one image refuse the field.
  const count = job.n === 1 ? null : job.n
  const values: readonly Value[] = [...placeImages(job.images, resolveUrl), ['mask', mask], ['n', count]]
  return {
    ...listFurtherFields(job.extra),
    prompt: job.prompt,
    ...placeSize(job.size, channel, host),
    ...buildInput(values, channel, host),
  }
}

function makeVideoInput(
  channel: ChannelEntry,
  { resolveUrl, upstreamModel }: Pick<MediaSubmit, 'resolveUrl' | 'upstreamModel'>,
  job: JobOf<'video'>,
  host: Host,
): Input {
  const { prompt, firstFrame, lastFrame, references, videos } = sortVideoParts(job)
  const images = firstFrame === null ? references : [firstFrame, ...references]
  const [video] = videos
  const values: readonly Value[] = [
    ...placeImages(images, resolveUrl),
    ['last_frame', lastFrame && resolveUrl(lastFrame)],
    ['video', video && resolveUrl(video)],
    ['duration', job.duration === null ? null : host.duration(job.duration, upstreamModel)],
    ['resolution', job.resolution],
    ['ratio', job.ratio],
    ['fps', job.fps],
    ['generate_audio', job.generate_audio],
    ['camera_fixed', job.camera_fixed],
    ['watermark', job.watermark],
  ]
  return { ...omitUndefined({ prompt, seed: job.seed }), ...buildInput(values, channel, host) }
}

/** Returns true where a channel leaves the field for sound out. */
export const leavesSoundOut = ({ input_names }: ChannelEntry): boolean => input_names.generate_audio === ''

/** Returns the input of a job; null where the host makes nothing of its kind. */
export function makeJobInput(channel: ChannelEntry, submit: MediaSubmit, host: Host): Input | null {
  const { job } = submit
  if (job.work === 'video') return makeVideoInput(channel, submit, job, host)
  return job.work === 'image' || job.work === 'image_edit' ? makeImageInput(channel, submit, job, host) : null
}
