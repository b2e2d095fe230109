/** Every public endpoint there is, in the order of the reference. */
import type { Endpoint } from './endpoint.ts'
import { accountEndpoints } from './endpoints/account.ts'
import { chatEndpoints } from './endpoints/chat.ts'
import { serviceEndpoints } from './endpoints/service.ts'

export const ENDPOINTS: readonly Endpoint[] = [...chatEndpoints, ...accountEndpoints, ...serviceEndpoints]
