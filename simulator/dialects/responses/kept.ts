/** Responses that are kept: shown, deleted, cancelled, and the items of their input. */
import { refuseBadKey } from '../../access.ts'
import {
  type Endpoint,
  type OpenedRequest,
  openedWith,
  type ReceivedRequest,
  SimulatedFailure,
} from '../../dialect.ts'
import type { KeptResponse } from '../../kept/response-shelf.ts'
import { openPoll } from '../../tasks/taken-work.ts'

function kept({ path, headers, world }: ReceivedRequest): { id: string; found: KeptResponse } {
  refuseBadKey(headers)
  const id = decodeURIComponent(path[1] ?? '')
  const found = world.responses.find(id)
  if (found !== null) return { id, found }
  throw new SimulatedFailure(404, 'not_found', `Response with id '${id}' not found.`)
}

function remove(request: ReceivedRequest): OpenedRequest {
  const { id } = kept(request)
  request.world.responses.delete(id)
  return openedWith({ id, object: 'response.deleted', deleted: true })
}

function inputItems(request: ReceivedRequest): OpenedRequest {
  const data = kept(request).found.input
  return openedWith({ object: 'list', data, first_id: null, last_id: null, has_more: false })
}

/** One that is made in the background is as far as its task. */
function show(request: ReceivedRequest): OpenedRequest {
  const { id, found } = kept(request)
  const isTask = request.world.tasks.find(DIALECT, id) !== null
  return isTask ? openPoll(request, DIALECT, id) : openedWith(found.response)
}

function cancel(request: ReceivedRequest): OpenedRequest {
  const { id } = kept(request)
  const { tasks } = request.world
  const task = tasks.find(DIALECT, id)
  if (task === null)
    throw new SimulatedFailure(400, 'invalid_request', 'Cannot cancel a synchronous response.')
  task.cancels += 1
  tasks.end(task, 'cancelled')
  return openedWith(task.tell(task))
}

const DIALECT = 'responses'
const ONE = /^\/v1\/responses\/([^/]+)$/

export const KEPT_ENDPOINTS: readonly Endpoint[] = [
  { method: 'GET', path: ONE, open: show },
  { method: 'DELETE', path: ONE, open: remove },
  { method: 'POST', path: /^\/v1\/responses\/([^/]+)\/cancel$/, open: cancel },
  { method: 'GET', path: /^\/v1\/responses\/([^/]+)\/input_items$/, open: inputItems },
]
