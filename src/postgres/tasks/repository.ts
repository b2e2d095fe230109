/** Tasks, and records of lost submits. The row is the truth; a transition names the version that was read. */

import type { Credits } from '../../../schemas/money.ts'
import type { TaskKind, TaskState } from '../../../schemas/tasks/task.ts'
import { BOOKING_DEADLINE_MS, onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import * as lists from './lists.ts'
import * as lostSubmits from './lost-submits.ts'
import { createTask, moveTask, renewTaskChain } from './tasks.ts'
import type * as types from './types.ts'

export interface Tasks {
  applyTransition(move: types.TaskMove): Promise<types.MoveOutcome>
  removeFiles(pick: Pick<types.Task, 'id' | 'result'>, keys: readonly string[]): Promise<void>
  create(task: types.NewTask): Promise<types.CreateTaskOutcome>
  read(ids: readonly string[]): Promise<types.Task[]>
  find(accountId: string, kind: TaskKind, id: string): Promise<types.Task | null>
  findByResponse(accountId: string, id: string): Promise<types.Task | null>
  list(taskListQuery: types.TaskListQuery): Promise<{ tasks: types.Task[]; hasMore: boolean }>
  listAll(query: types.AllTasksQuery): Promise<types.Task[]>
  listOpenJobs(openJobQuery: types.OpenJobQuery): Promise<types.OpenJob[]>
  deleteRecord(accountId: string, kind: TaskKind, id: string, now: number): Promise<boolean>
  claimStale(
    before: number,
    now: number,
    limit: number,
    newBefore?: number,
  ): Promise<{ id: string; chain: number }[]>
  findOverdue(now: number, limit: number): Promise<string[]>
  touch(ids: readonly string[], now: number): Promise<void>
  countOpen(): Promise<{ kind: TaskKind; state: TaskState; count: number }[]>
  recordObjects(objects: readonly { readonly key: string; readonly expiresAt: number }[]): Promise<void>
  findExpiredObjects(now: number, limit: number): Promise<string[]>
  removeObjects(keys: readonly string[]): Promise<void>
  renewChain(id: string, now: number): Promise<{ id: string; chain: number } | null>
}

export interface LostSubmits {
  recordFinding(taskId: string, lostFinding: lostSubmits.LostFinding, now: number): Promise<boolean>
  close(
    {
      taskId,
      cost,
      reason,
    }: { readonly taskId: string; readonly cost: Credits | null; readonly reason: string },
    now: number,
  ): Promise<lostSubmits.LostSubmit>
  claim(now: number, until: number, limit: number): Promise<lostSubmits.LostSubmit[]>
  list(lostSubmitQuery: lostSubmits.LostSubmitQuery): Promise<lostSubmits.LostSubmit[]>
  check(taskId: string, now: number): Promise<lostSubmits.LostSubmit>
  count(): Promise<number>
  sum({
    accountId,
    from,
    to,
  }: {
    readonly accountId: string | null
    readonly from: number
    readonly to: number
  }): Promise<{ submits: number; cost: Credits }>
}

export const openTasks = ({ main, rounds }: Pools): Tasks => ({
  ...onPool(main, { applyTransition: moveTask, removeFiles: lists.removeFiles }, BOOKING_DEADLINE_MS),
  ...onPool(
    main,
    {
      create: createTask,
      read: lists.readTasks,
      find: lists.findTask,
      findByResponse: lists.findResponseTask,
      list: lists.listTasks,
      listAll: lists.listAllTasks,
      listOpenJobs: lists.listOpenJobs,
      deleteRecord: lists.deleteTaskRecord,
      recordObjects: lists.recordObjects,
      removeObjects: lists.removeObjects,
      touch: lists.touchTasks,
    },
    READ_DEADLINE_MS,
  ),
  ...onPool(
    rounds,
    {
      claimStale: lists.claimStaleTasks,
      findOverdue: lists.findOverdueTasks,
      countOpen: lists.countOpenTasks,
      findExpiredObjects: lists.findExpiredObjects,
    },
    READ_DEADLINE_MS,
  ),
  ...onPool(main, { renewChain: renewTaskChain }),
})

export const openLostSubmits = ({ main, rounds }: Pools): LostSubmits => ({
  ...onPool(
    main,
    { recordFinding: lostSubmits.recordFinding, close: lostSubmits.closeLostSubmit },
    BOOKING_DEADLINE_MS,
  ),
  ...onPool(
    main,
    {
      list: lostSubmits.listLostSubmits,
      check: lostSubmits.checkLostSubmit,
      count: lostSubmits.countLostSubmits,
      sum: lostSubmits.sumLostSubmits,
    },
    READ_DEADLINE_MS,
  ),
  ...onPool(rounds, { claim: lostSubmits.claimLostSubmits }, READ_DEADLINE_MS),
})
