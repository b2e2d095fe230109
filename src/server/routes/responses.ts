/** Routes of what upstreams of the responses protocol keep. */
import {
  addConversationItems,
  beginConversation,
  type ConversationDeps,
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
  type StoredResponsesDeps,
  showResponse,
} from '../../../pipelines/chat/stored/responses.ts'
import type { RoutedPath } from './routed.ts'

export type StoredRouteDeps = StoredResponsesDeps & ConversationDeps

const CONVERSATION = '/v1/conversations/{id}'
/** Endpoints of the public interface that are not served; without them here their names were ids. */
const UNSERVED = ['/v1/responses/input_tokens', '/v1/responses/compact']

export const responseRoutes = (deps: StoredRouteDeps): readonly RoutedPath[] => [
  ...UNSERVED.map((path) => ({ path, methods: {} })),
  {
    path: '/v1/responses/{id}',
    methods: { GET: { handler: showResponse(deps) }, DELETE: { handler: deleteResponse(deps) } },
  },
  { path: '/v1/responses/{id}/input_items', methods: { GET: { handler: listResponseInput(deps) } } },
  { path: '/v1/responses/{id}/cancel', methods: { POST: { handler: cancelResponse(deps) } } },
  { path: '/v1/conversations', methods: { POST: { handler: beginConversation(deps) } } },
  {
    path: CONVERSATION,
    methods: {
      GET: { handler: showConversation(deps) },
      POST: { handler: changeConversation(deps) },
      DELETE: { handler: deleteConversation(deps) },
    },
  },
  {
    path: `${CONVERSATION}/items`,
    methods: { GET: { handler: listConversationItems(deps) }, POST: { handler: addConversationItems(deps) } },
  },
  {
    path: `${CONVERSATION}/items/{item_id}`,
    methods: {
      GET: { handler: showConversationItem(deps) },
      DELETE: { handler: deleteConversationItem(deps) },
    },
  },
]
