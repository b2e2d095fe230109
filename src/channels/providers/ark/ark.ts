/** Volcengine Ark: models or endpoints of inference (`ep-...`) by name. */
import type { Provider } from '../provider.ts'
import { arkImages } from './images.ts'
import { arkVideo } from './video.ts'

const BASE_URL = 'https://ark.cn-beijing.volces.com/api/v3'

export const ark: Provider = {
  title: 'Volcengine Ark',
  baseUrls: {
    'chat-completions': BASE_URL,
    responses: BASE_URL,
    'ark-images': BASE_URL,
    'ark-video': BASE_URL,
  },
  outputLimitField: 'max_tokens',
  listedAs: ['volcengine'],
  media: { 'ark-images': arkImages, 'ark-video': arkVideo },
}
