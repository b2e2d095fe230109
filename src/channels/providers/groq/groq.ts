/** Groq: usage of a stream is in `x_groq` of its last chunk. */
import type { ProviderPreset } from '../provider.ts'

const BASE_URL = 'https://api.groq.com/openai/v1'

export const groq: ProviderPreset = {
  title: 'Groq',
  baseUrls: {
    'chat-completions': BASE_URL,
    responses: BASE_URL,
  },
  outputLimitField: 'max_completion_tokens',
}
