/** Voices as clients have them cloned and read of them. See docs/api-rules.md, "Music, voices, avatars, transcripts". */
import { z } from 'zod'
import { boundText, callerLink, mediaFields } from './fields.ts'

export const VOICE_MODEL = 'voice-clone-pro'
const VOICE_NAME_MAX_CHARS = 100
export const VOICE_LIST_MAX = 200
/** The length of the recording that a voice is made from. */
export const VOICE_REFERENCE_MIN_SECONDS = 5
export const VOICE_REFERENCE_MAX_SECONDS = 180

export const voiceRequest = z.looseObject({
  ...mediaFields,
  name: boundText(VOICE_NAME_MAX_CHARS),
  audio_url: callerLink.describe('A public direct link to 5 seconds to 3 minutes of clear speech.'),
  async: z.boolean().nullish().describe('The answer does not wait until the voice is ready.'),
})
export type VoiceRequest = z.infer<typeof voiceRequest>

export const voiceRecord = z.object({
  id: z.string().describe('What `voice` of speech and of video requests takes.'),
  name: z.string(),
  status: z.enum(['pending', 'ready', 'failed']),
  model: z.string(),
  created_at: z.iso.datetime(),
  error: z.string().nullable(),
})
export type VoiceRecord = z.infer<typeof voiceRecord>

export const voiceList = z.object({
  voices: z.array(voiceRecord).describe(`The account's own, the newest first, up to ${VOICE_LIST_MAX}.`),
  presets: z
    .array(z.object({ id: z.string(), name: z.string(), models: z.array(z.string()) }))
    .describe('What everybody may use, each with the models that take it.'),
})
