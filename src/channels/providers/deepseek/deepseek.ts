/** DeepSeek: counts hits of its cache at the top level of the usage. */
import type { Provider } from '../provider.ts'

export const deepseek: Provider = {
  title: 'DeepSeek',
  baseUrls: {
    'chat-completions': 'https://api.deepseek.com/v1',
    messages: 'https://api.deepseek.com/anthropic',
  },
  outputLimitField: 'max_tokens',
}
