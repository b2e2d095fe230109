/** MiniMax: reports failures as HTTP 200 with `base_resp.status_code`. The host in China is `api.minimaxi.com`. */
import type { Provider } from '../provider.ts'
import { minimaxImages } from './images.ts'
import { minimaxMusic } from './music.ts'
import { minimaxSpeech } from './speech.ts'
import { minimaxVideo } from './video.ts'

export const minimax: Provider = {
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
  media: {
    'minimax-images': minimaxImages,
    'minimax-video': minimaxVideo,
    'minimax-speech': minimaxSpeech,
    'minimax-music': minimaxMusic,
  },
}
