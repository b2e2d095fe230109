/** Moonshot: counts cached tokens at the top level of the usage. The base URL in China is `https://api.moonshot.cn`. */
import type { Provider } from '../provider.ts'

export const moonshot: Provider = {
  title: 'Moonshot',
  baseUrls: {
    'chat-completions': 'https://api.moonshot.ai/v1',
    messages: 'https://api.moonshot.ai/anthropic',
  },
  keyHeader: 'authorization',
  outputLimitField: 'max_tokens',
  listedAs: ['moonshot', 'moonshotai'],
  withoutCredit: ['exceeded_current_quota_error'],
}
