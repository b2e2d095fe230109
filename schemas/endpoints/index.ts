/** Every public endpoint there is, in the order of the reference. */

import { MANAGEMENT_PATH } from '../management/operation.ts'
import { accountEndpoints } from './account.ts'
import { audioEndpoints } from './audio.ts'
import { chatEndpoints } from './chat.ts'
import type { Endpoint } from './endpoint.ts'
import { imageEndpoints } from './images.ts'
import { managementEndpoints } from './management.ts'
import { FILES_TAG, serviceEndpoints } from './service.ts'
import { videoEndpoints } from './videos.ts'
import { wikiEndpoints } from './wiki.ts'

/** Adds HEAD to an endpoint that needs no key. Files declare their own, which answers more. */
function withHead(endpoint: Endpoint): readonly Endpoint[] {
  const { method, key, path, tag } = endpoint
  const isPage = method === 'GET' && key === 'none' && !path.startsWith(MANAGEMENT_PATH)
  if (!isPage || tag === FILES_TAG) return [endpoint]
  return [endpoint, { ...endpoint, method: 'HEAD', summary: `Give the headers of ${path} alone.` }]
}

export const ENDPOINTS: readonly Endpoint[] = [
  ...chatEndpoints,
  ...imageEndpoints,
  ...videoEndpoints,
  ...audioEndpoints,
  ...wikiEndpoints,
  ...accountEndpoints,
  ...serviceEndpoints,
  ...managementEndpoints,
].flatMap(withHead)
