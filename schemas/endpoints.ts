/** Every public endpoint there is, in the order of the reference. */
import type { Endpoint } from './endpoint.ts'
import { accountEndpoints } from './endpoints/account.ts'
import { audioEndpoints } from './endpoints/audio.ts'
import { chatEndpoints } from './endpoints/chat.ts'
import { imageEndpoints } from './endpoints/images.ts'
import { serviceEndpoints } from './endpoints/service.ts'
import { videoEndpoints } from './endpoints/videos.ts'
import { wikiEndpoints } from './endpoints/wiki.ts'

/** What needs no key is answered by HEAD as well. Files say so themselves: their HEAD answers more. */
function withHead(endpoint: Endpoint): readonly Endpoint[] {
  const { method, key, path, failures } = endpoint
  if (method !== 'GET' || key !== 'none' || failures.includes('not_found')) return [endpoint]
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
].flatMap(withHead)
