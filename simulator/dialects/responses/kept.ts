/** Keeps responses and conversations, and shows, deletes and cancels responses. */

import { refuseBadKey } from '../../access.ts'
import {
  type Endpoint,
  type OpenedRequest,
  openWith,
  type ReceivedRequest,
  SimulatedFailure,
} from '../../dialect.ts'
import { makeTaskId } from '../../tasks/task-book.ts'
import { openPoll } from '../../tasks/work.ts'

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
  return openWith({ id, object: 'response.deleted', deleted: true })
}

function inputItems(request: ReceivedRequest): OpenedRequest {
  const data = kept(request).found.input
  return openWith({ object: 'list', data, first_id: null, last_id: null, has_more: false })
}

/** A background response has the status of its task. */
function show(request: ReceivedRequest): OpenedRequest {
  const { id, found } = kept(request)
  const isTask = request.world.tasks.find(DIALECT, id) !== null
  return isTask ? openPoll(request, DIALECT, id) : openWith(found.response)
}

function cancel(request: ReceivedRequest): OpenedRequest {
  const { id } = kept(request)
  const { tasks } = request.world
  const task = tasks.find(DIALECT, id)
  if (task === null)
    throw new SimulatedFailure(400, 'invalid_request', 'Cannot cancel a synchronous response.')
  task.cancels += 1
  tasks.end(task, 'cancelled')
  return openWith(task.tell(task))
}

const DIALECT = 'responses'
const ONE = /^\/v1\/responses\/([^/]+)$/

export const KEPT_ENDPOINTS: readonly Endpoint[] = [
  { method: 'GET', path: ONE, open: show },
  { method: 'DELETE', path: ONE, open: remove },
  { method: 'POST', path: /^\/v1\/responses\/([^/]+)\/cancel$/, open: cancel },
  { method: 'GET', path: /^\/v1\/responses\/([^/]+)\/input_items$/, open: inputItems },
]

export type Item = Readonly<Record<string, unknown>> & { readonly id: string }

export type Conversation = {
  readonly id: string
  readonly createdAt: number
  metadata: unknown
  /** Oldest first. */
  items: Item[]
}

/** The most conversations, and the most responses. */
const MAX_KEPT = 1_000
const MS_PER_SECOND = 1_000

export class ConversationShelf {
  readonly #kept = new Map<string, Conversation>()

  begin(items: readonly unknown[], metadata: unknown): Conversation {
    if (this.#kept.size >= MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value ?? '')
    const createdAt = Math.floor(Date.now() / MS_PER_SECOND)
    const begun: Conversation = { id: `conv_${makeTaskId()}`, createdAt, metadata, items: [] }
    this.#kept.set(begun.id, begun)
    this.add(begun, items)
    return begun
  }

  find(id: string): Conversation | null {
    return this.#kept.get(id) ?? null
  }

  /** Adds items with ids, and returns them. */
  add(conversation: Conversation, items: readonly unknown[]): Item[] {
    const added = items.map((item) => ({ type: 'message', ...(item as object), id: `msg_${makeTaskId()}` }))
    conversation.items.push(...added)
    return added
  }

  delete(id: string): void {
    this.#kept.delete(id)
  }
}

export type KeptResponse = {
  readonly response: Readonly<Record<string, unknown>>
  /** The items of the request's input and of the answer. */
  readonly input: readonly unknown[]
  readonly output: readonly Readonly<Record<string, unknown>>[]
  /** The whole conversation with its output as JSON, which a later call reads again. */
  readonly json: string
}

export class ResponseShelf {
  readonly #kept = new Map<string, KeptResponse>()

  keep(id: string, kept: KeptResponse): void {
    if (this.#kept.size >= MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value ?? '')
    this.#kept.set(id, kept)
  }

  find(id: string): KeptResponse | null {
    return this.#kept.get(id) ?? null
  }

  /** Returns whether it existed. */
  delete(id: string): boolean {
    return this.#kept.delete(id)
  }
}
