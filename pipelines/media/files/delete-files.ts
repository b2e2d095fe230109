/** Deletes the files of an ended task for its owner. The record stays: it is the evidence of the charge. */
import { Failure } from '../../../schemas/failure.ts'
import { isFinal, type TaskKind } from '../../../schemas/tasks/task.ts'
import type { Handler } from '../../../src/http/handler.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import type { FileRemover } from '../../../src/storage/store.ts'
import type { CallAccess } from '../../calls/authenticate.ts'
import { answerForFree } from '../free-call.ts'
import { findTask, type TaskFinder, throwUnavailable } from '../task-records.ts'

export interface DeletableFiles {
  readonly tasks: RecordsOfFiles
  readonly files: FileRemover
}

interface RecordsOfFiles extends TaskFinder {
  /** Removes files from the record of their task. */
  removeFiles(task: Task, keys: readonly string[]): Promise<void>
}

const notEnded = (): Failure =>
  new Failure('invalid_request', 'The task has not ended: its files can be deleted once it has.')

/** @throws Failure `invalid_request` while the task runs; `not_found`, `service_unavailable` */
export const deleteFiles = (access: CallAccess, { tasks, files }: DeletableFiles, kind: TaskKind): Handler =>
  answerForFree(access, async (caller) => {
    const task = await findTask(tasks, caller, kind, caller.request.params.id)
    if (!isFinal(task.state)) throw notEnded()
    const keys = (task.result?.files ?? []).flatMap(({ key }) => (key === null ? [] : [key]))
    // The files go first: if the request is cut off in between, the client deletes again and no file is left.
    await files.delete(keys).catch(throwUnavailable)
    await tasks.removeFiles(task, keys).catch(throwUnavailable)
    return { id: task.id, deleted: true }
  })
