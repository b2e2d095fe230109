/** Creates, shows, changes and deletes conversations and their items. */
import { refuseBadKey } from '../../access.ts'
import {
  type Endpoint,
  isObject,
  type OpenedRequest,
  openWith,
  parseJsonObject,
  type ReceivedRequest,
  SimulatedFailure,
} from '../../dialect.ts'
import { checkItems, invalid } from './input.ts'
import type { Conversation, Item } from './kept.ts'

const shown = ({ id, createdAt, metadata }: Conversation) => ({
  id,
  object: 'conversation',
  created_at: createdAt,
  metadata: metadata ?? {},
})

const listed = (data: readonly unknown[]) => ({
  object: 'list',
  data,
  first_id: null,
  last_id: null,
  has_more: false,
})

export function conversationNamed({ conversations }: ReceivedRequest['world'], id: string): Conversation {
  const found = conversations.find(id)
  if (found !== null) return found
  throw new SimulatedFailure(404, 'not_found', `Conversation with id '${id}' not found.`)
}

function ofPath({ path, headers, world }: ReceivedRequest): Conversation {
  refuseBadKey(headers)
  return conversationNamed(world, decodeURIComponent(path[1] ?? ''))
}

/** @throws {SimulatedFailure} 400 for an unknown field or invalid items */
function makeBody(
  { body }: ReceivedRequest,
  fields: readonly string[],
  before: readonly Item[] = [],
): { items: unknown[]; metadata: unknown } {
  const given = body.length === 0 ? {} : parseJsonObject(body)
  for (const field of Object.keys(given))
    if (!fields.includes(field)) throw invalid(field, `Unknown parameter: '${field}'.`)
  const { items = [], metadata = null } = given
  if (!Array.isArray(items) || !items.every(isObject)) throw invalid('items', "Invalid type for 'items'.")
  if (items.length > 0) checkItems(items, before)
  return { items, metadata }
}

function begin(request: ReceivedRequest): OpenedRequest {
  refuseBadKey(request.headers)
  const { items, metadata } = makeBody(request, ['items', 'metadata'])
  return openWith(shown(request.world.conversations.begin(items, metadata)))
}

function change(request: ReceivedRequest): OpenedRequest {
  const found = ofPath(request)
  found.metadata = makeBody(request, ['metadata']).metadata
  return openWith(shown(found))
}

function remove(request: ReceivedRequest): OpenedRequest {
  const { id } = ofPath(request)
  request.world.conversations.delete(id)
  return openWith({ id, object: 'conversation.deleted', deleted: true })
}

function addItems(request: ReceivedRequest): OpenedRequest {
  const found = ofPath(request)
  return openWith(
    listed(request.world.conversations.add(found, makeBody(request, ['items'], found.items).items)),
  )
}

/** Lists the items, newest first unless requested otherwise. */
function listItems(request: ReceivedRequest): OpenedRequest {
  const { items } = ofPath(request)
  return openWith(listed(request.query.get('order') === 'asc' ? items : items.toReversed()))
}

function makeItem(request: ReceivedRequest): { found: Conversation; id: string } {
  const found = ofPath(request)
  const id = decodeURIComponent(request.path[2] ?? '')
  if (found.items.some((item) => item.id === id)) return { found, id }
  throw new SimulatedFailure(404, 'not_found', `Item with id '${id}' not found.`)
}

function showItem(request: ReceivedRequest): OpenedRequest {
  const { found, id } = makeItem(request)
  return openWith(found.items.find((item) => item.id === id))
}

function removeItem(request: ReceivedRequest): OpenedRequest {
  const { found, id } = makeItem(request)
  found.items = found.items.filter((item) => item.id !== id)
  return openWith(shown(found))
}

const ALL = /^\/v1\/conversations$/
const ONE = /^\/v1\/conversations\/([^/]+)$/
const ITEMS = /^\/v1\/conversations\/([^/]+)\/items$/
const ITEM = /^\/v1\/conversations\/([^/]+)\/items\/([^/]+)$/

export const CONVERSATION_ENDPOINTS: readonly Endpoint[] = [
  { method: 'POST', path: ALL, open: begin },
  { method: 'GET', path: ONE, open: (request) => openWith(shown(ofPath(request))) },
  { method: 'POST', path: ONE, open: change },
  { method: 'DELETE', path: ONE, open: remove },
  { method: 'GET', path: ITEMS, open: listItems },
  { method: 'POST', path: ITEMS, open: addItems },
  { method: 'GET', path: ITEM, open: showItem },
  { method: 'DELETE', path: ITEM, open: removeItem },
]
