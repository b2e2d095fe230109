/** An owner deletes the files of a task that has ended. Its record stays: it is the evidence of the charge. */
import { Failure } from '../../../schemas/failure.ts'
import { isFinal, type TaskKind } from '../../../schemas/tasks/task.ts'
import type { Handler } from '../../../src/http/handler.ts'
import type { Tasks } from '../../../src/postgres/tasks/repository.ts'
import type { ObjectStore } from '../../../src/storage/store.ts'
import { type FreeCallDeps, freeCall } from '../free-call.ts'
import { findTask, type TaskRecordsDeps, unavailable } from '../task-records.ts'

export interface DeleteFilesDeps extends TaskRecordsDeps {
  readonly tasks: TaskRecordsDeps['tasks'] & Pick<Tasks, 'removeFiles'>
  readonly files: Pick<ObjectStore, 'delete'>
}

const notEnded = (): Failure =>
  new Failure('invalid_request', 'The task has not ended: its files can be deleted once it has.')

/** Throws `Failure` `invalid_request` while the task runs; `not_found`, `service_unavailable`. */
export const deleteFiles = (deps: FreeCallDeps & DeleteFilesDeps, kind: TaskKind): Handler =>
  freeCall(deps, async (caller) => {
    const task = await findTask(deps, caller, kind, caller.request.params.id)
    if (!isFinal(task.state)) throw notEnded()
    const keys = (task.result?.files ?? []).flatMap(({ key }) => (key === null ? [] : [key]))
    // The files first: a client whose request is cut off in between deletes again, and nothing is left behind.
    await deps.files.delete(keys).catch(unavailable)
    await deps.tasks.removeFiles(task, keys).catch(unavailable)
    return { id: task.id, deleted: true }
  })
