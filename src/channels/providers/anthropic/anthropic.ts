/** Anthropic: the messages protocol, and a compatible endpoint of chat-completions. */
import type { Provider } from '../provider.ts'

export const anthropic: Provider = {
  title: 'Anthropic',
  baseUrls: {
    messages: 'https://api.anthropic.com',
    'chat-completions': 'https://api.anthropic.com/v1',
  },
  featureFields: ['mcp_servers'],
  accountRefusal: /^Your credit balance is too low/i,
}
