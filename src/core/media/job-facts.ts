/**
 * Describes a job for the detail of its call, as lines: the request and the result. Never any
 * text of a prompt, a name that a person gave, or a link, and nothing that an upstream calls its own.
 */
import { countCharacters } from '../../../schemas/media/fields.ts'
import type { MediaJob, ResultFile, TaskResult } from '../../../schemas/media/job.ts'
import { ROUTES, type RouteName } from '../../../schemas/routes.ts'
import { DETAIL_TEXT_MAX_CHARS } from '../call-log/detail-text.ts'
import { shorten } from '../json/cut.ts'

/** An absent value has no line. */
type Facts = readonly (readonly [name: string, value: string | number | boolean | null | undefined])[]
type Lines = readonly (readonly [name: string, value: string])[]

const lines = (facts: Facts): Lines =>
  facts.flatMap(([name, value]) =>
    value === null || value === undefined || value === ''
      ? []
      : [[name, shorten(String(value), DETAIL_TEXT_MAX_CHARS)] as const],
  )

const MS_PER_SECOND = 1000

const countGiven = (text: string | null): number | null => (text === null ? null : countCharacters(text))
const countItems = (list: readonly unknown[]): number | null => (list.length === 0 ? null : list.length)
const roundSeconds = (seconds: number | null): number | null =>
  seconds === null ? null : Math.round(seconds * MS_PER_SECOND) / MS_PER_SECOND
const ifTrue = (value: boolean): true | null => (value ? true : null)

/** Returns the route that creates a job; null where several routes create the same. */
function findJobRoute(job: MediaJob): RouteName | null {
  switch (job.work) {
    case 'image':
      return job.images.length === 0 ? 'makeImages' : null
    case 'image_edit':
      return 'editImages'
    case 'video':
    case 'avatar_video':
    case 'lipsync':
    case 'motion':
    case 'clip_compose':
      return 'makeVideo'
    case 'music':
      return 'makeMusic'
    case 'speech':
      return 'makeSpeech'
    case 'voice':
      return 'cloneVoice'
    case 'avatar':
      return 'registerAvatar'
    case 'transcript':
      return 'extractTranscript'
    case 'subtitle':
      return 'recogniseSubtitles'
    case 'response':
      return 'createResponse'
  }
}

/** Returns the endpoint of a job; undefined where several endpoints create the same. */
export function findJobEndpoint(job: MediaJob): string | undefined {
  const route = findJobRoute(job)
  return route === null ? undefined : ROUTES[route][1]
}

function askedFor(job: MediaJob, sound: boolean): Facts {
  switch (job.work) {
    case 'image':
    case 'image_edit':
      return [
        ['images', job.n],
        ['size', job.size],
        ['input_images', countItems(job.images)],
        ['mask', ifTrue(job.mask !== null)],
        ['prompt_characters', countGiven(job.prompt)],
      ]
    case 'video':
      return [
        ['duration_sec', job.duration],
        ['resolution', job.resolution],
        ['ratio', job.ratio],
        ['fps', job.fps],
        ['seed', job.seed],
        ['input_images', countItems(job.content.filter(({ type }) => type === 'image'))],
        ['input_videos', countItems(job.content.filter(({ type }) => type === 'video'))],
        ['generate_audio', job.generate_audio ?? (sound ? 'by default' : null)],
        ['camera_fixed', job.camera_fixed],
        ['watermark', job.watermark],
      ]
    case 'avatar_video':
      return [
        ['duration_sec', job.duration],
        ['speaks', job.audio === null ? 'a text' : 'a recording'],
        ['text_characters', countGiven(job.text)],
      ]
    case 'lipsync':
      return [['duration_sec', job.duration]]
    case 'motion':
      return [
        ['duration_sec', job.duration],
        ['resolution', job.resolution],
        ['portraits', job.portraits.length],
        ['face_count', job.face_count],
      ]
    case 'clip_compose':
      return [
        ['title_effect', job.enable_title_effect],
        ['caption_effect', job.enable_caption_effect],
        ['keyword_effect', job.enable_keyword_effect],
        ['edited_subtitles', job.sentences === null ? null : job.sentences.length],
        ['music', ifTrue(job.music !== null)],
        ['name_card', ifTrue(job.name_card !== null)],
        ['pictures', countItems(job.pip_config)],
      ]
    case 'music':
      return [
        ['sung', job.lyrics === null ? null : 'the lyrics of the request'],
        ['instrumental', job.instrumental],
        ['prompt_characters', countGiven(job.prompt)],
        ['lyrics_characters', countGiven(job.lyrics)],
      ]
    case 'speech':
      return [
        ['characters', countGiven(job.input)],
        ['voice', job.voice === null ? 'the default' : 'chosen'],
        ['speed', job.speed],
      ]
    case 'avatar':
      return [['source_kind', job.source_kind]]
    case 'voice':
    case 'transcript':
    case 'subtitle':
    case 'response':
      return []
  }
}

/** Returns the request. `sound` is that of a video, which its model may make unasked. */
export const jobLines = (job: MediaJob, sound = false): Lines => lines(askedFor(job, sound))

const NOUNS: Readonly<Record<ResultFile['role'], string>> = {
  image: 'images',
  video: 'videos',
  audio: 'sounds',
  cover: 'covers',
}

const printSize = ({ width, height }: ResultFile): string | null =>
  width === null || height === null ? null : `${width}x${height}`

/** Returns the delivered files, and those that could not be copied. */
export function resultLines(result: TaskResult | null): Lines {
  if (result === null) return []
  const { files, seconds, input_seconds, segments, beyond } = result
  const sizes = new Set(files.filter(({ role }) => role !== 'cover').flatMap((file) => printSize(file) ?? []))
  const roles = Object.keys(NOUNS) as ResultFile['role'][]
  const notCopied = files.filter(({ key }) => key === null).length
  return lines([
    ...roles.map((role) => [NOUNS[role], countItems(files.filter((file) => file.role === role))] as const),
    ['sizes', sizes.size === 0 ? null : [...sizes].join(', ')],
    ['seconds', roundSeconds(seconds)],
    ['input_seconds', roundSeconds(input_seconds)],
    ['beyond_order', beyond.join('; ')],
    ['lines', segments === null ? null : segments.length],
    ['not_copied', notCopied === 0 ? null : `${notCopied}: the upstream's own links are handed out`],
  ])
}
