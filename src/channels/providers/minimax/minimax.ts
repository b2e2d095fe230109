/** MiniMax: reports failures as HTTP 200 with `base_resp.status_code`. The host in China is `api.minimaxi.com`. */
import type { ProviderPreset } from '../provider.ts'

export const minimax: ProviderPreset = {
  title: 'MiniMax',
  baseUrls: {
    'chat-completions': 'https://api.minimax.io/v1',
    messages: 'https://api.minimax.io/anthropic',
    'minimax-images': 'https://api.minimax.io/v1',
    'minimax-video': 'https://api.minimax.io/v1',
    'minimax-speech': 'https://api.minimax.io/v1',
    'minimax-music': 'https://api.minimax.io/v1',
  },
  keyHeader: 'authorization',
  outputLimitField: 'max_completion_tokens',
}
