/** xAI: counts reasoning tokens outside the completion. */
import type { ProviderPreset } from '../provider.ts'

const BASE_URL = 'https://api.x.ai/v1'

export const xai: ProviderPreset = {
  title: 'xAI',
  baseUrls: {
    'chat-completions': BASE_URL,
    responses: BASE_URL,
    messages: 'https://api.x.ai',
  },
  keyHeader: 'authorization',
  outputLimitField: 'max_completion_tokens',
  keepsResponsesDays: 30,
}
