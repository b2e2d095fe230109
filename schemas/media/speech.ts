/** Speech in requests and answers. See docs/api-rules.md, "Speech". */
import { z } from 'zod'
import { toTaskListSchema } from '../tasks/list.ts'
import { boundText, mediaFields, modelId } from './fields.ts'

export const SPEECH_INPUT_MAX_CHARS = 5000
export const SPEED_MIN = 0.25
export const SPEED_MAX = 4
const VOICE_ID_MAX_CHARS = 200

/** The format requested from channels. */
export const SPEECH_FORMAT = 'mp3'

export const speechRequest = z.looseObject({
  ...mediaFields,
  model: modelId,
  input: boundText(SPEECH_INPUT_MAX_CHARS).describe(
    `The text, at most ${SPEECH_INPUT_MAX_CHARS} characters.`,
  ),
  voice: z
    .string()
    .min(1)
    .max(VOICE_ID_MAX_CHARS)
    .nullish()
    .describe(
      'The id of a voice of the account that is ready, or of a preset. A voice is chosen where it is left out.',
    ),
  speed: z
    .number()
    .min(SPEED_MIN)
    .max(SPEED_MAX)
    .nullish()
    .describe('Of voices of the account only; 1 where it is left out.'),
  response_format: z
    .string()
    .nullish()
    .describe(
      `The answer is the sound itself, as with an Accept header that names audio/* or application/octet-stream; ` +
        `${SPEECH_FORMAT} is what there is. With an Accept header that names application/json it is ignored.`,
    ),
  stream_format: z
    .literal('audio', { error: "it must be 'audio'; sound is not streamed as events" })
    .nullish()
    .describe('The answer is the sound itself, as with response_format. Sound is not streamed as events.'),
  async: z.boolean().nullish().describe('The answer is a task to poll, which suits long texts.'),
})
export type SpeechRequest = z.infer<typeof speechRequest>

const characters = z.int().describe('Of the input: what is charged.')

export const speech = z.object({
  model: z.string(),
  audio_url: z.string().describe('Opens for ever.'),
  characters,
  cost_usd: z.string().describe('Credits, a decimal string.'),
})

export const speechSubmitted = z.object({
  id: z.string(),
  model: z.string(),
  status: z.literal('pending'),
  characters,
  created_at: z.iso.datetime(),
})

export const speechTask = z.object({
  id: z.string(),
  model: z.string(),
  status: z.enum(['pending', 'succeeded', 'failed']),
  characters,
  duration_sec: z.string().optional().describe('On success, where it is known: a decimal string.'),
  audio_url: z.string().optional().describe('On success. Opens for ever.'),
  created_at: z.iso.datetime(),
  error: z.object({ code: z.string(), message: z.string() }).optional().describe('Why there is no speech.'),
})
export type SpeechTask = z.infer<typeof speechTask>

export const speechTaskList = toTaskListSchema(speechTask)
