/** Songs in requests and answers. See docs/api-rules.md, "Music, voices, avatars, transcripts". */
import { z } from 'zod'
import { toTaskListSchema } from '../tasks/list.ts'
import { boundText, countCharacters, isGiven, mediaFields, modelId } from './fields.ts'

export const MUSIC_PROMPT_MAX_CHARS = 200
export const LYRICS_MAX_CHARS = 3000
const TITLE_MAX_CHARS = 200
const STYLE_MAX_CHARS = 1000

export const musicRequest = z
  .looseObject({
    model: modelId,
    ...mediaFields,
    prompt: z
      .string()
      .nullish()
      .describe(`What the songs shall be like, at most ${MUSIC_PROMPT_MAX_CHARS} characters.`),
    lyrics: z
      .string()
      .nullish()
      .describe(
        `What is sung, at most ${LYRICS_MAX_CHARS} characters. Where they are given \`prompt\` is ignored.`,
      ),
    title: boundText(TITLE_MAX_CHARS, 0).nullish().describe('With lyrics.'),
    tags: boundText(STYLE_MAX_CHARS, 0).nullish().describe('Styles.'),
    negative_tags: boundText(STYLE_MAX_CHARS, 0).nullish().describe('Styles to avoid.'),
    instrumental: z.boolean().nullish().describe('Nobody sings: lyrics are ignored.'),
  })
  .refine(({ prompt, lyrics, instrumental }) => instrumental === true || isGiven(prompt) || isGiven(lyrics), {
    error: 'one of prompt and lyrics is required, unless instrumental is true',
  })
  .superRefine((asked, context) => {
    const isSung = asked.instrumental !== true && isGiven(asked.lyrics)
    // The other one is ignored, however long it is.
    const [field, most] = isSung
      ? (['lyrics', LYRICS_MAX_CHARS] as const)
      : (['prompt', MUSIC_PROMPT_MAX_CHARS] as const)
    if (countCharacters(asked[field] ?? '') > most)
      context.addIssue({ code: 'custom', path: [field], message: `it must be at most ${most} characters` })
  })
export type MusicRequest = z.infer<typeof musicRequest>

export const musicSubmitted = z.object({
  id: z.string(),
  status: z.literal('queued'),
  model: z.string(),
  created_at: z.iso.datetime(),
})

const track = z.object({
  clip_id: z.string(),
  title: z.string().nullable(),
  duration_sec: z.number().nullable(),
  audio_url: z.string().describe('Opens for seven days, with a fresh signature in each answer.'),
  image_url: z.string().nullable().describe('The cover.'),
  lyrics: z.string().nullable(),
})

export const musicTask = z.object({
  id: z.string(),
  model: z.string(),
  status: z.enum(['processing', 'succeeded', 'failed', 'expired', 'cancelled']),
  upstream_status: z.string().nullable().describe("The upstream's own word, once there is one."),
  tracks: z.array(track).describe('One or two songs, as many as the upstream makes; empty until then.'),
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
  created_at: z.iso.datetime(),
  completed_at: z.iso.datetime().nullable(),
})
export type MusicTask = z.infer<typeof musicTask>

export const musicTaskList = toTaskListSchema(musicTask)
