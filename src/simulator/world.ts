/** What one simulated provider remembers from one call to the next: its tasks, its files, the voices it was given, the responses it keeps. */

import { FileShelf } from './media/file-shelf.ts'
import { PaymentBook } from './payments/book.ts'
import type { SimulatedPayments } from './payments/control.ts'
import { Webhooks } from './payments/webhooks.ts'
import { ResponseShelf } from './response-shelf.ts'
import { TaskStore } from './tasks/task-book.ts'
import { VoiceList } from './voice-list.ts'

export type World = {
  readonly tasks: TaskStore
  readonly files: FileShelf
  readonly voices: VoiceList
  readonly responses: ResponseShelf
  readonly payments: SimulatedPayments
}

/** @param paymentsFile where the books of payments are kept; null: in memory */
export function newWorld(paymentsFile: string | null): World {
  const webhooks = new Webhooks()
  const book = new PaymentBook(paymentsFile, (event) => webhooks.receive(event))
  return {
    tasks: new TaskStore(),
    files: new FileShelf(),
    voices: new VoiceList(),
    responses: new ResponseShelf(),
    payments: { book, webhooks },
  }
}
