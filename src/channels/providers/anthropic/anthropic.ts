/** Anthropic: the messages protocol, and a compatible endpoint of chat-completions. */
import type { Provider } from '../provider.ts'

export const anthropic: Provider = {
  title: 'Anthropic',
  baseUrls: {
    messages: 'https://api.anthropic.com',
    'chat-completions': 'https://api.anthropic.com/v1',
  },
  serverTools: { messages: { web_search: '0.01', url_context: '0', mcp: '0', tool_search: '0' } },
  featureFields: ['mcp_servers'],
  accountRefusal: /^Your credit balance is too low/i,
}
