/** Deletes the record of a voice or an avatar. See docs/api-rules.md, "Music, voices, avatars, transcripts". */
import { Failure } from '../../schemas/failure.ts'
import { isFinal } from '../../schemas/tasks/task.ts'
import type { PresetKind } from '../../src/channels/media/adapter.ts'
import type { Caller } from '../calls/authenticate.ts'
import { findTask, type TaskFinder, taskNotFound, throwUnavailable } from './task-records.ts'

export interface DeletableRecords extends TaskFinder {
  /** Returns false if there is none. */
  deleteRecord(accountId: string, kind: PresetKind, id: string, now: number): Promise<boolean>
}

const pendingRecord = (kind: PresetKind): Failure =>
  new Failure(
    'invalid_request',
    `The ${kind} is still being made: its record is the evidence of a refund, and can be deleted once it is ready or failed.`,
  )

/** @throws Failure `invalid_request` while it is pending; `not_found`, `service_unavailable` */
export async function deleteRecord(
  records: DeletableRecords,
  caller: Caller,
  kind: PresetKind,
): Promise<{ id: string; deleted: true }> {
  const task = await findTask(records, caller, kind, caller.request.params.id)
  const { id, accountId, state } = task
  if (!isFinal(state)) throw pendingRecord(kind)
  const isDeleted = await records.deleteRecord(accountId, kind, id, Date.now()).catch(throwUnavailable)
  if (!isDeleted) throw taskNotFound(kind)
  return { id, deleted: true }
}
