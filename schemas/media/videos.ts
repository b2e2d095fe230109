/**
 * `POST /v1/videos/generations` as clients write it, model by model, and video tasks as they read them.
 * See docs/api-rules.md, "Videos" and "Digital humans".
 */
import { z } from 'zod'
import { toTaskListSchema } from '../tasks/list.ts'
import { boundText, callerLink, mediaFields, modelId } from './fields.ts'

/** Models that do something other than make a video from text and images. */
export const VIDEO_WORKS: Readonly<Record<string, 'avatar_video' | 'lipsync' | 'motion' | 'clip_compose'>> = {
  'dh-avatar': 'avatar_video',
  'dh-lipsync': 'lipsync',
  'dh-lipsync-pro': 'lipsync',
  'dh-lipsync-max': 'lipsync',
  'dh-motion': 'motion',
  'clip-compose': 'clip_compose',
}

/** The longest video: the hold is calculated from it. */
const DURATION_MAX_SECONDS = 6 * 60 * 60
const VIDEO_PROMPT_MAX_CHARS = 20_000
/** The hold follows the request: a request of zero seconds would hold nothing for what may be long. */
const DURATION_MIN_SECONDS = 1
const MAX_PARTS = 100
export const PORTRAITS_MAX = 7
/** The limit of speech. */
const NARRATION_MAX_CHARS = 5000
const MAX_WORD_CHARS = 64

const duration = z
  .number()
  .min(DURATION_MIN_SECONDS)
  .max(DURATION_MAX_SECONDS)
  .describe('Seconds. What is held until the end; what is charged is the length that was made.')
const word = z.string().min(1).max(MAX_WORD_CHARS)

const textPart = z.looseObject({ type: z.literal('text'), text: boundText(VIDEO_PROMPT_MAX_CHARS) })
const link = z.union([callerLink, z.looseObject({ url: callerLink }).transform(({ url }) => url)])
const imagePart = z.looseObject({
  type: z.literal('image_url'),
  image_url: link,
  role: word.nullish().describe('first_frame, last_frame, reference_image, or a word of the model.'),
})
const videoPart = z.looseObject({ type: z.literal('video_url'), video_url: link, role: word.nullish() })

export const videoRequest = z
  .looseObject({
    model: modelId,
    ...mediaFields,
    prompt: boundText(VIDEO_PROMPT_MAX_CHARS).nullish(),
    content: z
      .array(z.discriminatedUnion('type', [textPart, imagePart, videoPart]))
      .max(MAX_PARTS)
      .nullish()
      .describe(
        'Words, pictures and videos, in their order; `prompt` comes before them. Flags in words, such as `--dur 5`, ' +
          'are removed: use the fields.',
      ),
    duration: duration
      .nullish()
      .describe(
        'Seconds, 12 where it is left out. Held until the end; what is charged is the length that was made.',
      ),
    resolution: word
      .nullish()
      .describe('One of those that the model has a price for. The model has its own where it is left out.'),
    ratio: word.nullish(),
    seed: z.int().nullish(),
    fps: z.int().positive().nullish(),
    watermark: z.boolean().nullish(),
    camera_fixed: z.boolean().nullish(),
    generate_audio: z
      .boolean()
      .nullish()
      .describe(
        'Whether the video has sound, which may have another price. The model decides where it is left out.',
      ),
  })
  .refine(({ prompt, content }) => prompt != null || (content != null && content.length > 0), {
    error: 'one of prompt and content is required',
  })
export type VideoRequest = z.infer<typeof videoRequest>

const thingId = z.string().min(1).max(200)

export const avatarVideoRequest = z
  .looseObject({
    model: modelId,
    ...mediaFields,
    avatar: thingId.describe('The id of an avatar of the account that is ready, or of a preset.'),
    audio_url: callerLink.nullish().describe('The speech; or `voice` and `text`.'),
    voice: thingId.nullish().describe('The id of a voice of the account that is ready, or of a preset.'),
    text: boundText(NARRATION_MAX_CHARS).nullish(),
    duration,
  })
  .refine(
    ({ audio_url, voice, text }) =>
      audio_url == null ? voice != null && text != null : voice == null && text == null,
    { error: 'either audio_url is required, or voice and text' },
  )

export const lipsyncRequest = z.looseObject({
  model: modelId,
  ...mediaFields,
  source_video_url: callerLink,
  audio_url: callerLink.describe('The video is as long as it.'),
  duration,
})

export const MOTION_GRADES = ['fast', 'standard', 'max'] as const

export const motionRequest = z.looseObject({
  model: modelId,
  ...mediaFields,
  source_video_url: callerLink.describe('The movements; the video is as long as it.'),
  content: z.array(imagePart).min(1).max(PORTRAITS_MAX).describe('Portraits.'),
  face_count: z
    .int()
    .min(1)
    .max(PORTRAITS_MAX)
    .nullish()
    .describe('People in the source video; as many as portraits where it is left out.'),
  resolution: z.enum(MOTION_GRADES).nullish().describe('Grade and price; standard where it is left out.'),
  duration,
})

export const videoSubmitted = z.object({
  id: z.string(),
  status: z.literal('queued'),
  model: z.string(),
  created_at: z.int().describe('Epoch seconds.'),
})

const videoStatus = z.enum(['queued', 'running', 'succeeded', 'failed', 'expired', 'cancelled'])

export const videoTask = z.object({
  id: z.string(),
  status: videoStatus,
  model: z.string(),
  created_at: z.int().describe('Epoch seconds.'),
  video_url: z.string().optional().describe('On success. With a fresh signature in each answer.'),
  expires_at: z
    .int()
    .nullable()
    .optional()
    .describe(
      'When `video_url` stops working, epoch seconds: after seven days. Null where the video could not be copied and ' +
        "the link is the upstream's own.",
    ),
  duration_sec: z.number().optional().describe('Length of the delivered clip, as far as it is known.'),
  input_video_duration_sec: z.number().optional().describe('Length of a video that went in.'),
  error: z.object({ code: z.string(), message: z.string() }).optional().describe('Why there is no video.'),
})

export const videoTaskList = toTaskListSchema(videoTask)
