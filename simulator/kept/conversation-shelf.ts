/** The conversations that the simulated provider keeps: the last ones, for any key. */
import { newTaskId } from '../tasks/task-book.ts'

export type Item = Readonly<Record<string, unknown>> & { readonly id: string }

export type Conversation = {
  readonly id: string
  readonly createdAt: number
  metadata: unknown
  /** Oldest first. */
  items: Item[]
}

const MAX_KEPT = 1_000
const MS_PER_SECOND = 1_000

export class ConversationShelf {
  readonly #kept = new Map<string, Conversation>()

  begin(items: readonly unknown[], metadata: unknown): Conversation {
    if (this.#kept.size >= MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value ?? '')
    const createdAt = Math.floor(Date.now() / MS_PER_SECOND)
    const begun: Conversation = { id: `conv_${newTaskId()}`, createdAt, metadata, items: [] }
    this.#kept.set(begun.id, begun)
    this.add(begun, items)
    return begun
  }

  find(id: string): Conversation | null {
    return this.#kept.get(id) ?? null
  }

  /** Adds items, each under an id; returns them. */
  add(conversation: Conversation, items: readonly unknown[]): Item[] {
    const added = items.map((item) => ({ type: 'message', ...(item as object), id: `msg_${newTaskId()}` }))
    conversation.items.push(...added)
    return added
  }

  delete(id: string): void {
    this.#kept.delete(id)
  }
}
