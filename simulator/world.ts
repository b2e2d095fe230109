/** The memory of one simulated provider: tasks, files, voices, responses, conversations, payments. */

import { ConversationShelf, ResponseShelf } from './dialects/responses/kept.ts'
import { FileShelf } from './media/file-shelf.ts'
import { PaymentBook } from './payments/book.ts'
import type { SimulatedPayments } from './payments/control.ts'
import { Webhooks } from './payments/webhooks.ts'
import { TaskStore } from './tasks/task-book.ts'

export type World = {
  readonly tasks: TaskStore
  readonly files: FileShelf
  readonly voices: VoiceList
  readonly responses: ResponseShelf
  readonly conversations: ConversationShelf
  readonly payments: SimulatedPayments
}

/** @param paymentsFile keeps the books of payments; null keeps them in memory */
export function newWorld(paymentsFile: string | null): World {
  const webhooks = new Webhooks()
  const book = new PaymentBook(paymentsFile, (event) => webhooks.receive(event))
  return {
    tasks: new TaskStore(),
    files: new FileShelf(),
    voices: new VoiceList(),
    responses: new ResponseShelf(),
    conversations: new ConversationShelf(),
    payments: { book, webhooks },
  }
}

const MAX_VOICES = 10_000

export type Voice = { readonly id: string; readonly name: string }

export const PRESET_VOICES: readonly Voice[] = [
  { id: 'sim-voice-ada', name: 'Ada' },
  { id: 'sim-voice-bram', name: 'Bram' },
  { id: 'sim-voice-mei', name: 'Mei' },
]

/** Voices that callers have cloned. */
class VoiceList {
  readonly #cloned = new Map<string, Voice>()
  readonly #removed = new Set<string>()

  /** Adds a voice; beyond 10,000 the oldest is forgotten. */
  add(voice: Voice): void {
    if (this.#cloned.size >= MAX_VOICES) this.#cloned.delete(this.#cloned.keys().next().value ?? '')
    this.#cloned.set(voice.id, voice)
  }

  /** Removes a voice; returns whether it existed. */
  remove(id: string): boolean {
    const isThere = this.#cloned.delete(id)
    if (isThere) this.#removed.add(id)
    return isThere
  }

  wasRemoved(id: string): boolean {
    return this.#removed.has(id)
  }

  /** Oldest first. */
  cloned(): Voice[] {
    return [...this.#cloned.values()]
  }
}
