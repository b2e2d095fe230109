/**
 * A task's order to an upstream and its result, in the gateway's own words: client requests are read into jobs,
 * adapters turn jobs into an upstream's requests and its answers into results. Both are kept with the task as JSON, so
 * nothing in them is large: files are in the object store or at a URL.
 */
import { z } from 'zod'
import { responseCall, responseFacts } from '../tasks/response.ts'

/** Taken in by the gateway: uploaded, or sent as a data URI. */
const storedFile = z.object({
  from: z.literal('store'),
  key: z.string(),
  media_type: z.string(),
  bytes: z.int().min(0),
  /** The client's own name of it, without folders. */
  name: z.string(),
})

/** A file that a job uses. */
export const fileRef = z.discriminatedUnion('from', [
  /** The caller's own link, http or https; the upstream fetches it. */
  z.object({ from: z.literal('url'), url: z.string() }),
  storedFile,
])
export type FileRef = z.infer<typeof fileRef>
export type StoredFileRef = Extract<FileRef, { from: 'store' }>
/** Files of a request stay in the object store this long. */
export const INPUT_LIFETIME_MS = 24 * 60 * 60 * 1000

const text = z.string()
const some = <T extends z.ZodType>(schema: T) => schema.nullable().default(null)
/** Further fields that the interface names, as the client gave them: no other ones reach an upstream. */
const extra = z.record(z.string(), z.unknown()).default({})

/** Images from a prompt, or from images and a prompt. */
export const imageJob = z.object({
  work: z.enum(['image', 'image_edit']),
  prompt: text,
  /** Number of images to make. */
  n: z.int().min(1),
  /** `WxH`; null is the upstream's default. */
  size: some(text),
  /** Reference images of a generation, or the images to edit. */
  images: z.array(fileRef).default([]),
  mask: some(fileRef),
  extra,
})

const videoPart = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text }),
  z.object({ type: z.literal('image'), file: fileRef, role: some(text) }),
  z.object({ type: z.literal('video'), file: fileRef, role: some(text) }),
])
export type VideoPart = z.infer<typeof videoPart>

const videoJob = z.object({
  work: z.literal('video'),
  content: z.array(videoPart),
  /** Seconds. */
  duration: some(z.number()),
  resolution: some(text),
  ratio: some(text),
  seed: some(z.int()),
  fps: some(z.int()),
  watermark: some(z.boolean()),
  camera_fixed: some(z.boolean()),
  generate_audio: some(z.boolean()),
})

/** A digital human that speaks: a sound file, or a voice and its text. */
const avatarVideoJob = z.object({
  work: z.literal('avatar_video'),
  /** The channel's own id of the avatar. */
  avatar: text,
  audio: some(fileRef),
  /** The channel's own id of the voice. */
  voice: some(text),
  text: some(text),
  duration: z.number(),
})

const lipsyncJob = z.object({
  work: z.literal('lipsync'),
  source_video: fileRef,
  audio: fileRef,
  duration: z.number(),
})

const motionJob = z.object({
  work: z.literal('motion'),
  source_video: fileRef,
  portraits: z.array(fileRef),
  face_count: z.int().min(1),
  resolution: z.enum(['fast', 'standard', 'max']),
  duration: z.number(),
})

const subtitleLine = z.object({
  content: text,
  /** Start and end in milliseconds. */
  showRange: z.array(z.number()).length(2),
})
export type SubtitleLine = z.infer<typeof subtitleLine>

const clipComposeJob = z.object({
  work: z.literal('clip_compose'),
  video: fileRef,
  /** The channel's own id of the recognition. */
  asr_id: text,
  video_style_id: some(text),
  enable_title_effect: z.boolean(),
  enable_caption_effect: z.boolean(),
  enable_keyword_effect: z.boolean(),
  title: some(text),
  music: some(fileRef),
  name_card: some(z.object({ name: text, description: text })),
  /** Null: as they were recognised. */
  sentences: some(z.array(subtitleLine)),
  pip_config: z.array(z.object({ media: fileRef, begin_time: z.number(), end_time: z.number() })).default([]),
})

const musicJob = z.object({
  work: z.literal('music'),
  prompt: some(text),
  lyrics: some(text),
  title: some(text),
  tags: some(text),
  negative_tags: some(text),
  instrumental: z.boolean(),
})

const speechJob = z.object({
  work: z.literal('speech'),
  input: text,
  /** The channel's own id of a voice; null is its default. */
  voice: some(text),
  speed: z.number(),
})

const voiceJob = z.object({ work: z.literal('voice'), name: text, audio: fileRef })

const avatarJob = z.object({
  work: z.literal('avatar'),
  name: text,
  source: fileRef,
  source_kind: z.enum(['image', 'video']),
})

/** `url` is a share link or a raw token. */
const transcriptJob = z.object({ work: z.literal('transcript'), url: text })

const subtitleJob = z.object({ work: z.literal('subtitle'), video: fileRef })

/** An answer that its upstream makes in the background. */
const responseJob = z.object({
  work: z.literal('response'),
  /** The request, as the upstream gets it but for the name of the model. */
  body: storedFile,
  call: responseCall,
  /** The conversation that it is a part of. */
  conversation: some(text),
  /** How long its upstream keeps it. */
  kept_days: z.int(),
})

export const mediaJob = z.discriminatedUnion('work', [
  imageJob,
  videoJob,
  avatarVideoJob,
  lipsyncJob,
  motionJob,
  clipComposeJob,
  musicJob,
  speechJob,
  voiceJob,
  avatarJob,
  transcriptJob,
  subtitleJob,
  responseJob,
])
export type MediaJob = z.infer<typeof mediaJob>
/** The kinds of work of tasks. */
export type TaskWork = MediaJob['work']
export type MediaWork = Exclude<TaskWork, 'response'>
export type JobOf<Work extends TaskWork> = Extract<MediaJob, { work: Work }>

/** One file that an upstream delivered, and what belongs to it. */
export const resultFile = z.object({
  role: z.enum(['image', 'video', 'audio', 'cover']),
  /** The upstream's link; null once the file is only in our store. */
  upstream_url: some(text),
  /** The key in our store; null: not copied. */
  key: some(text),
  media_type: some(text),
  width: some(z.int()),
  height: some(z.int()),
  seconds: some(z.number()),
  /** Position of the song that it belongs to. */
  track: some(z.int()),
  /** Epoch milliseconds when our store removes it; null: never, or by the rule of its kind. */
  kept_until: z.int().nullish(),
})
export type ResultFile = z.infer<typeof resultFile>

export const trackFacts = z.object({
  clip_id: text,
  title: some(text),
  lyrics: some(text),
  seconds: some(z.number()),
})
export type TrackFacts = z.infer<typeof trackFacts>

/** The delivery of a finished task. Fields that a kind lacks are empty. */
export const taskResult = z.object({
  files: z.array(resultFile).default([]),
  /** Length that is charged, as the upstream reports it. */
  seconds: some(z.number()),
  /** The delivered resolution, grade or quality, in the upstream's own word; null where it reports none. */
  variant: some(text),
  /** Characters of speech as the upstream bills them; null where it does not report them. */
  billed_characters: some(z.number()),
  /** Length of a reference video of the request. */
  input_seconds: some(z.number()),
  tracks: z.array(trackFacts).default([]),
  /** The channel's own id of an avatar, a voice or a recognition that was made. */
  made_id: some(text),
  segments: some(z.array(subtitleLine)),
  transcript: some(
    z.object({
      content: text,
      title: some(text),
      platform: some(text),
      seconds: some(z.number()),
      origin_link: some(text),
    }),
  ),
  /** Of an answer in the background. */
  response: responseFacts.optional(),
  /** The surplus over the order, a line each: left out of the result above, or charged as it is. */
  beyond: z.array(text).default([]),
})
export type TaskResult = z.infer<typeof taskResult>
export const emptyResult = (): TaskResult => taskResult.parse({})
