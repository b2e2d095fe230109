/** Clips in requests: recognised subtitles, templates, and compositions of both. See docs/api-rules.md, "Clips". */
import { z } from 'zod'
import { boundText, callerLink, mediaFields } from './fields.ts'

export const CLIP_COMPOSE_MODEL = 'clip-compose'
export const CLIP_SUBTITLE_MODEL = 'clip-subtitle'
/** Value of `api_version` in the answers of recognition and templates. */
export const CLIP_API_VERSION = 'old'

export const TITLE_MAX_CHARS = 30
export const CARD_NAME_MAX_CHARS = 20
export const CARD_DESCRIPTION_MAX_CHARS = 40
export const PICTURES_MAX = 20
/** A line and a title are words on a screen. */
const LINE_MAX_CHARS = 1000
const RAW_TITLE_MAX_CHARS = 10_000
const LINES_MAX = 5000
const ID_MAX_CHARS = 200

const id = z.string().min(1).max(ID_MAX_CHARS)
const milliseconds = z.number().min(0)

const sentence = z.looseObject({
  content: z
    .string()
    .max(LINE_MAX_CHARS)
    .refine((text) => text.trim() !== '', 'it must not be empty'),
})

const picture = z
  .looseObject({ media_url: callerLink, begin_time: milliseconds, end_time: milliseconds })
  .refine(({ begin_time, end_time }) => end_time > begin_time, {
    path: ['end_time'],
    error: 'it must be greater than begin_time',
  })

export const clipComposeRequest = z.looseObject({
  ...mediaFields,
  model: z.string().min(1).describe(`${CLIP_COMPOSE_MODEL}.`),
  video_url: callerLink.describe('The video whose subtitles were recognised; at most five minutes.'),
  asr_id: id.describe('From the recognition. It lasts a day.'),
  video_style_id: id
    .nullish()
    .describe('`style_id` of a template; without one no subtitles, title or name card are drawn.'),
  enable_title_effect: z.boolean().nullish().describe('Default false.'),
  enable_caption_effect: z.boolean().nullish().describe('Default true.'),
  enable_keyword_effect: z.boolean().nullish().describe('Default true.'),
  title: z
    .string()
    .max(RAW_TITLE_MAX_CHARS)
    .nullish()
    .describe(`What is beyond ${TITLE_MAX_CHARS} characters is cut off.`),
  music_url: callerLink.nullish(),
  name_card: z
    .looseObject({
      name: boundText(CARD_NAME_MAX_CHARS, 0),
      description: boundText(CARD_DESCRIPTION_MAX_CHARS, 0).nullish(),
    })
    .nullish(),
  sentences: z
    .array(sentence)
    .max(LINES_MAX)
    .nullish()
    .describe('The recognised lines in their order with other words; `showRange` is ignored.'),
  pip_config: z.array(picture).max(PICTURES_MAX).nullish().describe('Pictures over the video; milliseconds.'),
})
export type ClipComposeRequest = z.infer<typeof clipComposeRequest>

export const clipSubtitleRequest = z.looseObject({
  ...mediaFields,
  video_url: callerLink,
  async: z.boolean().nullish().describe('true: a task to poll, answered with 202.'),
})
export type ClipSubtitleRequest = z.infer<typeof clipSubtitleRequest>

const line = z.object({
  content: z.string(),
  showRange: z.array(z.number()).length(2).describe('Start and end in milliseconds.'),
})
const recognised = {
  asr_id: z.string().describe('What `asr_id` of a composition takes.'),
  segments: z.array(line),
  sentences: z.array(line).describe('The same as segments.'),
}

export const clipSubtitles = z.object({
  model: z.string(),
  api_version: z.string(),
  ...recognised,
})

export const clipSubtitleSubmitted = z.object({
  id: z.string(),
  object: z.literal('clip_subtitle'),
  model: z.string(),
  status: z.literal('running'),
  asr_id: z.string(),
  api_version: z.string(),
})

export const clipSubtitleTask = z.object({
  id: z.string(),
  object: z.literal('clip_subtitle'),
  model: z.string(),
  status: z.enum(['running', 'succeeded', 'failed']),
  ...recognised,
  api_version: z.string(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
})

export const clipTemplateQuery = z.object({
  cate_id: z.string().max(ID_MAX_CHARS).optional().describe('Of one category only.'),
})

export const clipTemplateList = z.object({
  list: z.array(
    z.object({
      style_id: z.string(),
      name: z.string(),
      cover_url: z.string(),
      demo_url: z.string(),
      cate_name: z.string(),
      scene: z.string(),
    }),
  ),
  sid: z.literal(''),
  api_version: z.string(),
})

export const clipCategoryList = z.object({
  list: z.array(z.object({ cate_id: z.string(), cate_name: z.string(), sort: z.number() })),
  api_version: z.string(),
})
