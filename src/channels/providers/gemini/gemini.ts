/** Gemini API: the generate-content protocol, a compatible endpoint of chat-completions, and videos by Veo. */
import type { Provider } from '../provider.ts'
import { veo } from './veo.ts'

export const gemini: Provider = {
  title: 'Gemini API',
  baseUrls: {
    'generate-content': 'https://generativelanguage.googleapis.com',
    'chat-completions': 'https://generativelanguage.googleapis.com/v1beta/openai',
    veo: 'https://generativelanguage.googleapis.com',
  },
  outputLimitField: 'max_tokens',
  listedAs: ['gemini', 'google'],
  media: { veo },
  usage: { reasonsInTotal: true },
  accountRefusal: /^API key (?:not valid|not found|expired)/i,
}
