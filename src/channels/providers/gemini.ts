/** Gemini API: the generate-content protocol, and a compatible endpoint of chat-completions. */
import type { ProviderPreset } from './provider.ts'

export const gemini: ProviderPreset = {
  title: 'Gemini',
  baseUrls: {
    'generate-content': 'https://generativelanguage.googleapis.com',
    'chat-completions': 'https://generativelanguage.googleapis.com/v1beta/openai',
  },
  outputLimitField: 'max_tokens',
}
