/**
 * Describes a job for the detail of its call, as lines: the request and the result. Never any
 * text of a prompt, a name that a person gave, or a link, and nothing that an upstream calls its own.
 */
import { countCharacters } from '../../../schemas/media/fields.ts'
import type { MediaJob, ResultFile, TaskResult } from '../../../schemas/media/job.ts'
import { DETAIL_TEXT_MAX_CHARS } from '../call-log/detail-text.ts'
import { shortened } from '../json/cut.ts'

/** An absent value has no line. */
type Facts = readonly (readonly [name: string, value: string | number | boolean | null | undefined])[]
type Lines = readonly (readonly [name: string, value: string])[]

const lines = (facts: Facts): Lines =>
  facts.flatMap(([name, value]) =>
    value === null || value === undefined || value === ''
      ? []
      : [[name, shortened(String(value), DETAIL_TEXT_MAX_CHARS)] as const],
  )

const MS_PER_SECOND = 1000

const lengthOf = (text: string | null): number | null => (text === null ? null : countCharacters(text))
const countOf = (list: readonly unknown[]): number | null => (list.length === 0 ? null : list.length)
const secondsOf = (seconds: number | null): number | null =>
  seconds === null ? null : Math.round(seconds * MS_PER_SECOND) / MS_PER_SECOND
const ifTrue = (value: boolean): true | null => (value ? true : null)

const VIDEOS = '/v1/videos/generations'

/** Returns the endpoint of a job; undefined where several endpoints create the same. */
export function endpointOfJob(job: MediaJob): string | undefined {
  switch (job.work) {
    case 'image':
      return job.images.length === 0 ? '/v1/images/generations' : undefined
    case 'image_edit':
      return '/v1/images/edits'
    case 'video':
    case 'avatar_video':
    case 'lipsync':
    case 'motion':
    case 'clip_compose':
      return VIDEOS
    case 'music':
      return '/v1/music/generations'
    case 'speech':
      return '/v1/audio/speech'
    case 'voice':
      return '/v1/audio/voices'
    case 'avatar':
      return '/v1/videos/avatars'
    case 'transcript':
      return '/v1/transcripts/extract'
    case 'subtitle':
      return '/v1/videos/clip-subtitles'
    case 'response':
      return '/v1/responses'
  }
}

function askedFor(job: MediaJob, sound: boolean): Facts {
  switch (job.work) {
    case 'image':
    case 'image_edit':
      return [
        ['images', job.n],
        ['size', job.size],
        ['input_images', countOf(job.images)],
        ['mask', ifTrue(job.mask !== null)],
        ['prompt_characters', lengthOf(job.prompt)],
      ]
    case 'video':
      return [
        ['duration_sec', job.duration],
        ['resolution', job.resolution],
        ['ratio', job.ratio],
        ['fps', job.fps],
        ['seed', job.seed],
        ['input_images', countOf(job.content.filter(({ type }) => type === 'image'))],
        ['input_videos', countOf(job.content.filter(({ type }) => type === 'video'))],
        ['generate_audio', job.generate_audio ?? (sound ? 'by default' : null)],
        ['camera_fixed', job.camera_fixed],
        ['watermark', job.watermark],
      ]
    case 'avatar_video':
      return [
        ['duration_sec', job.duration],
        ['speaks', job.audio === null ? 'a text' : 'a recording'],
        ['text_characters', lengthOf(job.text)],
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
        ['pictures', countOf(job.pip_config)],
      ]
    case 'music':
      return [
        ['sung', job.lyrics === null ? null : 'the lyrics of the request'],
        ['instrumental', job.instrumental],
        ['prompt_characters', lengthOf(job.prompt)],
        ['lyrics_characters', lengthOf(job.lyrics)],
      ]
    case 'speech':
      return [
        ['characters', lengthOf(job.input)],
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

const sizeOf = ({ width, height }: ResultFile): string | null =>
  width === null || height === null ? null : `${width}x${height}`

/** Returns the delivered files, and those that could not be copied. */
export function resultLines(result: TaskResult | null): Lines {
  if (result === null) return []
  const { files, seconds, input_seconds, segments, beyond } = result
  const sizes = new Set(files.filter(({ role }) => role !== 'cover').flatMap((file) => sizeOf(file) ?? []))
  const roles = Object.keys(NOUNS) as ResultFile['role'][]
  const notCopied = files.filter(({ key }) => key === null).length
  return lines([
    ...roles.map((role) => [NOUNS[role], countOf(files.filter((file) => file.role === role))] as const),
    ['sizes', sizes.size === 0 ? null : [...sizes].join(', ')],
    ['seconds', secondsOf(seconds)],
    ['input_seconds', secondsOf(input_seconds)],
    ['beyond_order', beyond.join('; ')],
    ['lines', segments === null ? null : segments.length],
    ['not_copied', notCopied === 0 ? null : `${notCopied}: the upstream's own links are handed out`],
  ])
}
