/** Every public endpoint there is, in the order of the reference. */

import { ROUTES } from '../routes.ts'
import { accountEndpoints } from './account.ts'
import { audioEndpoints } from './audio.ts'
import { chatEndpoints } from './chat.ts'
import type { Endpoint } from './endpoint.ts'
import { imageEndpoints } from './images.ts'
import { managementEndpoints } from './management.ts'
import { serviceEndpoints } from './service.ts'
import { videoEndpoints } from './videos.ts'
import { wikiEndpoints } from './wiki.ts'

const described = [
  ...chatEndpoints,
  ...imageEndpoints,
  ...videoEndpoints,
  ...audioEndpoints,
  ...wikiEndpoints,
  ...accountEndpoints,
  ...serviceEndpoints,
]

export const ENDPOINTS: readonly Endpoint[] = [
  ...described.flatMap(({ name, ...description }) => {
    const [method, ...paths] = ROUTES[name]
    // A reader of the reference cannot tell how many segments a parameter takes.
    return paths.map((path) => ({ ...description, method, path: path.replace(/[+*]\}/, '}') }))
  }),
  ...managementEndpoints,
]
