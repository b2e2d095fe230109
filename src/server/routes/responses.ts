/** Routes of stored responses. */
import {
  deleteResponse,
  listResponseInput,
  type StoredResponsesDeps,
  showResponse,
} from '../../../pipelines/chat/stored-responses.ts'
import type { RoutedPath } from './routed.ts'

export type { StoredResponsesDeps }

export const responseRoutes = (deps: StoredResponsesDeps): readonly RoutedPath[] => [
  {
    path: '/v1/responses/{id}',
    methods: { GET: { handler: showResponse(deps) }, DELETE: { handler: deleteResponse(deps) } },
  },
  { path: '/v1/responses/{id}/input_items', methods: { GET: { handler: listResponseInput(deps) } } },
]
