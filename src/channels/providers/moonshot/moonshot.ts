/** Moonshot: counts cached tokens at the top level of the usage. The base URL in China is `https://api.moonshot.cn`. */
import type { ProviderPreset } from '../provider.ts'

export const moonshot: ProviderPreset = {
  title: 'Moonshot',
  baseUrls: {
    'chat-completions': 'https://api.moonshot.ai/v1',
    messages: 'https://api.moonshot.ai/anthropic',
  },
  keyHeader: 'authorization',
  outputLimitField: 'max_tokens',
}
