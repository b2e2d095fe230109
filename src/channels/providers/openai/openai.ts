/** OpenAI: its reasoning models take an output limit in `max_completion_tokens` alone. */
import type { ProviderPreset } from '../provider.ts'

const BASE_URL = 'https://api.openai.com/v1'

export const openai: ProviderPreset = {
  title: 'OpenAI',
  baseUrls: {
    'chat-completions': BASE_URL,
    responses: BASE_URL,
    'openai-images': BASE_URL,
    'openai-speech': BASE_URL,
  },
  outputLimitField: 'max_completion_tokens',
  keepsResponsesDays: 30,
  keepsConversations: true,
}
