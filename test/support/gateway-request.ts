import type { GatewayRequest } from '../../src/http/handler.ts'
import { NO_PARAMS } from '../../src/http/router.ts'

/** Makes a request as the server hands it to a handler, without headers and body where a test gives none. */
export const gatewayRequest = (more: Partial<GatewayRequest>): GatewayRequest => ({
  requestId: 'req_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
  method: 'GET',
  path: '/v1/logs',
  params: NO_PARAMS,
  query: '',
  header: () => '',
  hasHeader: () => false,
  body: Buffer.alloc(0),
  submittedAt: 0,
  startedAt: 0,
  ...more,
})
