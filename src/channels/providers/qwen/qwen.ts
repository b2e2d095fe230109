/** Qwen in Alibaba Cloud Model Studio: the base URL differs by region, `https://dashscope.aliyuncs.com` in China. */
import type { Provider } from '../provider.ts'
import { dashscope } from './dashscope.ts'

export const qwen: Provider = {
  title: 'Qwen (Alibaba Cloud)',
  baseUrls: {
    'chat-completions': 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
    messages: 'https://dashscope-intl.aliyuncs.com/apps/anthropic',
    dashscope: 'https://dashscope-intl.aliyuncs.com/api/v1',
  },
  keyHeader: 'authorization',
  outputLimitField: 'max_tokens',
  listedAs: ['dashscope', 'alibaba'],
  media: { dashscope },
  featureFields: ['enable_search', 'search_options', 'enable_code_interpreter'],
  accountRefusal: /^Access denied, please make sure your account/i,
}
