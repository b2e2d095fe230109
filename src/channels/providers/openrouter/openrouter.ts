/** OpenRouter: keeps a stream alive by comments, and sends errors inside one with `error.code`. */
import type { Provider } from '../provider.ts'

const BASE_URL = 'https://openrouter.ai/api/v1'

export const openrouter: Provider = {
  title: 'OpenRouter',
  baseUrls: {
    'chat-completions': BASE_URL,
    responses: BASE_URL,
    messages: 'https://openrouter.ai/api',
  },
  keyHeader: 'authorization',
  outputLimitField: 'max_tokens',
  routingFields: ['models', 'provider', 'route', 'transforms', 'plugins', 'preset', 'fallbacks'],
}
