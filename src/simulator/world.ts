/** What one simulated provider remembers from one call to the next: its tasks, its files, the voices it was given. */

import { FileShelf } from './media/file-shelf.ts'
import { TaskStore } from './tasks/task-book.ts'
import { VoiceList } from './voice-list.ts'

export type World = {
  readonly tasks: TaskStore
  readonly files: FileShelf
  readonly voices: VoiceList
}

export function newWorld(): World {
  return { tasks: new TaskStore(), files: new FileShelf(), voices: new VoiceList() }
}
