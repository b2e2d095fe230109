/** Anthropic: the messages protocol, and a compatible endpoint of chat-completions. */
import type { ProviderPreset } from '../provider.ts'

export const anthropic: ProviderPreset = {
  title: 'Anthropic',
  baseUrls: {
    messages: 'https://api.anthropic.com',
    'chat-completions': 'https://api.anthropic.com/v1',
  },
}
