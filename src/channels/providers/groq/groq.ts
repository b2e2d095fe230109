/** Groq: usage of a stream is in `x_groq` of its last chunk. */
import type { Provider } from '../provider.ts'

const BASE_URL = 'https://api.groq.com/openai/v1'

export const groq: Provider = {
  title: 'Groq',
  baseUrls: {
    'chat-completions': BASE_URL,
    responses: BASE_URL,
  },
  outputLimitField: 'max_completion_tokens',
  routingFields: ['compound_custom', 'search_settings'],
}
