/** Deleting the record of something that was made for an account. See docs/api-rules.md, "Voices". */
import { Failure } from '../../schemas/failure.ts'
import { isFinal } from '../../schemas/tasks/task.ts'
import type { PresetKind } from '../../src/channels/media/voices-and-avatars.ts'
import type { Tasks } from '../../src/postgres/tasks/repository.ts'
import type { Caller } from '../stages/authenticate.ts'
import { type CancelDeps, cancelTask } from './cancel-task.ts'
import { findTask, lastStep, type TaskRecordsDeps, taskNotFound, unavailable } from './task-records.ts'

export interface DeleteRecordDeps extends CancelDeps {
  readonly tasks: TaskRecordsDeps['tasks'] & Pick<Tasks, 'deleteTaskRecord'>
}

const pendingRecord = (kind: PresetKind): Failure =>
  new Failure(
    'invalid_request',
    `The ${kind} is still being made: its record is the evidence of a refund, and can be deleted once it is ready or failed.`,
  )

/**
 * One that no upstream has confirmed is cancelled first, where possible.
 * @throws Failure `invalid_request` while it is pending; `not_found`, `task_not_cancellable`, `service_unavailable`
 */
export async function deleteRecord(
  deps: DeleteRecordDeps,
  caller: Caller,
  kind: PresetKind,
): Promise<{ id: string; deleted: true }> {
  const task = await findTask(deps, caller, kind, lastStep(caller.request.path))
  const { id, accountId } = task
  const { state } = task.state === 'unconfirmed' ? await cancelTask(deps, caller, kind, id) : task
  if (!isFinal(state)) throw pendingRecord(kind)
  const isDeleted = await deps.tasks.deleteTaskRecord(accountId, kind, id, Date.now()).catch(unavailable)
  if (!isDeleted) throw taskNotFound(kind)
  return { id, deleted: true }
}
