/** Every public endpoint there is, in the order of the reference. */
import type { Endpoint } from './endpoint.ts'
import { accountEndpoints } from './endpoints/account.ts'
import { audioEndpoints } from './endpoints/audio.ts'
import { chatEndpoints } from './endpoints/chat.ts'
import { imageEndpoints } from './endpoints/images.ts'
import { serviceEndpoints } from './endpoints/service.ts'
import { videoEndpoints } from './endpoints/videos.ts'
import { wikiEndpoints } from './endpoints/wiki.ts'

export const ENDPOINTS: readonly Endpoint[] = [
  ...chatEndpoints,
  ...imageEndpoints,
  ...videoEndpoints,
  ...audioEndpoints,
  ...wikiEndpoints,
  ...accountEndpoints,
  ...serviceEndpoints,
]
