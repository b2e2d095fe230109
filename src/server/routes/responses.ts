/** Routes of what upstreams of the responses protocol keep. */
import {
  addConversationItems,
  beginConversation,
  changeConversation,
  deleteConversation,
  deleteConversationItem,
  listConversationItems,
  showConversation,
  showConversationItem,
} from '../../../pipelines/chat/stored/conversations.ts'
import {
  cancelResponse,
  deleteResponse,
  listResponseInput,
  showResponse,
} from '../../../pipelines/chat/stored/responses.ts'
import type { CallGroups } from '../gateway/call-groups.ts'
import { type RoutedPath, routed } from './routed.ts'

/** Endpoints of the public interface that are not served; without them here their names were ids. */
const UNSERVED = ['/v1/responses/input_tokens', '/v1/responses/compact']

export const responseRoutes = (deps: CallGroups): readonly RoutedPath[] => [
  ...UNSERVED.map((path) => routed(path, {})),
  routed('/v1/responses/{id}', { GET: showResponse(deps), DELETE: deleteResponse(deps) }),
  routed('/v1/responses/{id}/input_items', { GET: listResponseInput(deps) }),
  routed('/v1/responses/{id}/cancel', { POST: cancelResponse(deps) }),
  routed('/v1/conversations', { POST: beginConversation(deps) }),
  routed('/v1/conversations/{id}', {
    GET: showConversation(deps),
    POST: changeConversation(deps),
    DELETE: deleteConversation(deps),
  }),
  routed('/v1/conversations/{id}/items', {
    GET: listConversationItems(deps),
    POST: addConversationItems(deps),
  }),
  routed('/v1/conversations/{id}/items/{item_id}', {
    GET: showConversationItem(deps),
    DELETE: deleteConversationItem(deps),
  }),
]
