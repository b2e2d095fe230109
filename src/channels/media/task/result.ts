/** Reads the results of Tollgate's task contract. See docs/upstream-task.md, "Kinds". */
import { z } from 'zod'
import type { MediaWork, SubtitleLine, TrackFacts } from '../../../../schemas/media/job.ts'
import type { Produced } from '../adapter.ts'
import {
  anyText,
  looseId,
  looseList,
  looseNumber,
  loosePixels,
  looseSeconds,
  looseText,
  looseWord,
  toFields,
} from '../answer.ts'
import { type Delivered, makeProduced, toDelivered, toSource } from '../files.ts'

/** Returns each item that the schema reads; skips the others. */
const parseItems = <Item extends object>(items: readonly unknown[], schema: z.ZodType<Item>): Item[] =>
  items.flatMap((item) => schema.safeParse(item).data ?? [])

const videoResult = z.looseObject({
  video_url: looseText,
  duration_sec: looseSeconds,
  resolution: looseWord,
  width: loosePixels,
  height: loosePixels,
  input_video_duration_sec: looseSeconds,
})

function readVideo(result: unknown): Produced | null {
  const { video_url, duration_sec, resolution, width, height, input_video_duration_sec } =
    videoResult.parse(result)
  const source = toSource(video_url)
  if (source === null) return null
  const facts = { width, height, seconds: duration_sec }
  return makeProduced([{ role: 'video', source, facts }], {
    seconds: duration_sec,
    variant: resolution,
    input_seconds: input_video_duration_sec,
  })
}

const imageResult = z.looseObject({ url: looseText, width: loosePixels, height: loosePixels })

function readImages(result: unknown): Produced | null {
  const { images, quality } = z.looseObject({ images: looseList, quality: looseWord }).parse(result)
  const delivered = parseItems(images, imageResult).flatMap(({ url, width, height }) =>
    toDelivered('image', toSource(url), { width, height }),
  )
  return delivered.length === 0 ? null : makeProduced(delivered, { variant: quality })
}

const trackResult = z.looseObject({
  clip_id: looseId,
  title: looseText,
  lyrics: looseText,
  duration_sec: looseSeconds,
  audio_url: looseText,
  image_url: looseText,
})

function readMusic(result: unknown): Produced | null {
  const { tracks } = z.looseObject({ tracks: looseList }).parse(result)
  const files: Delivered[] = []
  const facts: TrackFacts[] = []
  for (const each of parseItems(tracks, trackResult)) {
    const audio = toSource(each.audio_url)
    if (audio === null) continue
    const track = facts.length
    const { title, lyrics, duration_sec: seconds } = each
    facts.push({ clip_id: each.clip_id ?? String(track + 1), title, lyrics, seconds })
    files.push({ role: 'audio', source: audio, facts: { track, seconds } })
    files.push(...toDelivered('cover', toSource(each.image_url), { track }))
  }
  return facts.length === 0 ? null : makeProduced(files, { tracks: facts })
}

const speechResult = z.looseObject({ audio_url: looseText, duration_sec: looseSeconds })

function readSpeech(result: unknown): Produced | null {
  const { audio_url, duration_sec: seconds } = speechResult.parse(result)
  const source = toSource(audio_url)
  return source === null ? null : makeProduced([{ role: 'audio', source, facts: { seconds } }], { seconds })
}

const transcriptResult = z.looseObject({
  content: anyText,
  title: looseText,
  cover: looseText,
  platform: looseText,
  duration_sec: looseNumber,
  origin_link: looseText,
})

function readTranscript(result: unknown): Produced | null {
  const read = transcriptResult.safeParse(result)
  if (!read.success) return null
  const { content, title, platform, duration_sec: seconds, origin_link } = read.data
  const files = toDelivered('cover', toSource(read.data.cover))
  return makeProduced(files, { transcript: { content, title, platform, seconds, origin_link } })
}

const line = z.looseObject({ content: anyText, showRange: z.tuple([z.number(), z.number()]) })

function readSubtitle(result: unknown): Produced | null {
  const read = z.looseObject({ asr_id: looseId, segments: z.array(line) }).safeParse(result)
  if (!read.success || read.data.asr_id === null) return null
  const segments = read.data.segments.map(({ content, showRange }): SubtitleLine => ({ content, showRange }))
  return makeProduced([], { made_id: read.data.asr_id, segments })
}

/** Reads a result that later requests name by its id. */
const readMade = (field: 'avatar_id' | 'voice_id') => (result: unknown) => {
  const id = looseId.parse(toFields(result)?.[field])
  return id === null ? null : makeProduced([], { made_id: id })
}

const READERS: Readonly<Record<MediaWork, (result: unknown) => Produced | null>> = {
  image: readImages,
  image_edit: readImages,
  video: readVideo,
  avatar_video: readVideo,
  lipsync: readVideo,
  motion: readVideo,
  clip_compose: readVideo,
  music: readMusic,
  speech: readSpeech,
  transcript: readTranscript,
  subtitle: readSubtitle,
  avatar: readMade('avatar_id'),
  voice: readMade('voice_id'),
}

/** Returns the result. Null where a required part of the kind is missing: nothing was delivered. */
export const readTaskResult = (work: MediaWork, result: unknown): Produced | null =>
  toFields(result) === null ? null : READERS[work](result)
