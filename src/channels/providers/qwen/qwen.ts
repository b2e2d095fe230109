/** Qwen in Alibaba Cloud Model Studio: the base URL differs by region, `https://dashscope.aliyuncs.com` in China. */
import type { ProviderPreset } from '../provider.ts'

export const qwen: ProviderPreset = {
  title: 'Qwen (Alibaba Cloud)',
  baseUrls: {
    'chat-completions': 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
    messages: 'https://dashscope-intl.aliyuncs.com/apps/anthropic',
    dashscope: 'https://dashscope-intl.aliyuncs.com/api/v1',
  },
  keyHeader: 'authorization',
  outputLimitField: 'max_tokens',
}
