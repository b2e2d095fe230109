/** OpenAI: its reasoning models take an output limit only in `max_completion_tokens`. */
import type { Provider } from '../provider.ts'
import { openaiImages } from './images.ts'
import { openaiSpeech } from './speech.ts'

const BASE_URL = 'https://api.openai.com/v1'

export const openai: Provider = {
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
  serverTools: {
    responses: {
      web_search: '0.01',
      code_interpreter: '0.03',
      computer_use: '0',
      mcp: '0',
      tool_search: '0',
    },
  },
  media: { 'openai-images': openaiImages, 'openai-speech': openaiSpeech },
  featureFields: ['web_search_options'],
  withoutCredit: ['insufficient_quota'],
}
