/** Gemini API: the generate-content protocol, a compatible endpoint of chat-completions, and videos by Veo. */
import type { ProviderPreset } from '../provider.ts'

export const gemini: ProviderPreset = {
  title: 'Gemini API',
  baseUrls: {
    'generate-content': 'https://generativelanguage.googleapis.com',
    'chat-completions': 'https://generativelanguage.googleapis.com/v1beta/openai',
    veo: 'https://generativelanguage.googleapis.com',
  },
  outputLimitField: 'max_tokens',
}
