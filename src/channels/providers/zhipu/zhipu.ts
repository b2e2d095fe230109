/** Zhipu: outside China the host is `api.z.ai`. */
import type { Provider } from '../provider.ts'

export const zhipu: Provider = {
  title: 'Zhipu',
  baseUrls: {
    'chat-completions': 'https://open.bigmodel.cn/api/paas/v4',
    messages: 'https://open.bigmodel.cn/api/anthropic',
  },
  keyHeader: 'authorization',
  outputLimitField: 'max_tokens',
  listedAs: ['zai', 'zhipuai'],
  withoutCredit: ['1113'],
}
