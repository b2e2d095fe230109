/** What one simulated provider remembers from one call to the next: its tasks, its files, the voices it was given, the responses and conversations it keeps. */

import { ConversationShelf } from './kept/conversation-shelf.ts'
import { ResponseShelf } from './kept/response-shelf.ts'
import { FileShelf } from './media/file-shelf.ts'
import { PaymentBook } from './payments/book.ts'
import type { SimulatedPayments } from './payments/control.ts'
import { Webhooks } from './payments/webhooks.ts'
import { TaskStore } from './tasks/task-book.ts'
import { VoiceList } from './voice-list.ts'

export type World = {
  readonly tasks: TaskStore
  readonly files: FileShelf
  readonly voices: VoiceList
  readonly responses: ResponseShelf
  readonly conversations: ConversationShelf
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
    conversations: new ConversationShelf(),
    payments: { book, webhooks },
  }
}
