/** Volcengine Ark: models or endpoints of inference (`ep-...`) by name. */
import type { ProviderPreset } from '../provider.ts'

const BASE_URL = 'https://ark.cn-beijing.volces.com/api/v3'

export const ark: ProviderPreset = {
  title: 'Volcengine Ark',
  baseUrls: {
    'chat-completions': BASE_URL,
    responses: BASE_URL,
    'ark-images': BASE_URL,
    'ark-video': BASE_URL,
  },
  outputLimitField: 'max_tokens',
}
