/** Every public endpoint there is, in the order of the reference. */

import { accountEndpoints } from './account.ts'
import { audioEndpoints } from './audio.ts'
import { chatEndpoints } from './chat.ts'
import type { Endpoint } from './endpoint.ts'
import { imageEndpoints } from './images.ts'
import { managementEndpoints } from './management.ts'
import { serviceEndpoints } from './service.ts'
import { videoEndpoints } from './videos.ts'
import { wikiEndpoints } from './wiki.ts'

export const ENDPOINTS: readonly Endpoint[] = [
  ...chatEndpoints,
  ...imageEndpoints,
  ...videoEndpoints,
  ...audioEndpoints,
  ...wikiEndpoints,
  ...accountEndpoints,
  ...serviceEndpoints,
  ...managementEndpoints,
]
