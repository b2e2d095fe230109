/** Tasks, and records of lost submits. The row is the truth; a transition names the version that was read. */

import type { Credits } from '../../../schemas/money.ts'
import type { TaskKind, TaskState } from '../../../schemas/tasks/task.ts'
import { BOOKING_DEADLINE_MS, onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import {
  claimStaleTasks,
  countOpenTasks,
  deleteTaskRecord,
  findExpiredObjects,
  findOverdueTasks,
  findResponseTask,
  findTask,
  listAllTasks,
  listOpenJobs,
  listTasks,
  readTasks,
  recordObjects,
  removeFiles,
  removeObjects,
  touchTasks,
} from './lists.ts'
import {
  checkLostSubmit,
  claimLostSubmits,
  closeLostSubmit,
  countLostSubmits,
  type LostFinding,
  type LostSubmit,
  type LostSubmitQuery,
  listLostSubmits,
  recordFinding,
  sumLostSubmits,
} from './lost-submits.ts'
import { createTask, moveTask, renewTaskChain } from './tasks.ts'
import type {
  AllTasksQuery,
  CreateTaskOutcome,
  MoveOutcome,
  NewTask,
  OpenJob,
  OpenJobQuery,
  Task,
  TaskListQuery,
  TaskMove,
} from './types.ts'

export interface Tasks {
  applyTransition(move: TaskMove): Promise<MoveOutcome>
  removeFiles(pick: Pick<Task, 'id' | 'result'>, keys: readonly string[]): Promise<void>
  create(task: NewTask): Promise<CreateTaskOutcome>
  read(ids: readonly string[]): Promise<Task[]>
  find(accountId: string, kind: TaskKind, id: string): Promise<Task | null>
  findByResponse(accountId: string, id: string): Promise<Task | null>
  list(taskListQuery: TaskListQuery): Promise<{ tasks: Task[]; hasMore: boolean }>
  listAll(query: AllTasksQuery): Promise<Task[]>
  listOpenJobs(openJobQuery: OpenJobQuery): Promise<OpenJob[]>
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
  recordFinding(taskId: string, lostFinding: LostFinding, now: number): Promise<boolean>
  close(
    {
      taskId,
      cost,
      reason,
    }: { readonly taskId: string; readonly cost: Credits | null; readonly reason: string },
    now: number,
  ): Promise<LostSubmit>
  claim(now: number, until: number, limit: number): Promise<LostSubmit[]>
  list(lostSubmitQuery: LostSubmitQuery): Promise<LostSubmit[]>
  check(taskId: string, now: number): Promise<LostSubmit>
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
  ...onPool(main, { applyTransition: moveTask, removeFiles }, BOOKING_DEADLINE_MS),
  ...onPool(
    main,
    {
      create: createTask,
      read: readTasks,
      find: findTask,
      findByResponse: findResponseTask,
      list: listTasks,
      listAll: listAllTasks,
      listOpenJobs,
      deleteRecord: deleteTaskRecord,
      recordObjects,
      removeObjects,
    },
    READ_DEADLINE_MS,
  ),
  ...onPool(
    rounds,
    {
      claimStale: claimStaleTasks,
      findOverdue: findOverdueTasks,
      touch: touchTasks,
      countOpen: countOpenTasks,
      findExpiredObjects,
    },
    READ_DEADLINE_MS,
  ),
  ...onPool(main, { renewChain: renewTaskChain }),
})

export const openLostSubmits = ({ main, rounds }: Pools): LostSubmits => ({
  ...onPool(main, { recordFinding, close: closeLostSubmit }, BOOKING_DEADLINE_MS),
  ...onPool(
    main,
    {
      list: listLostSubmits,
      check: checkLostSubmit,
      count: countLostSubmits,
      sum: sumLostSubmits,
    },
    READ_DEADLINE_MS,
  ),
  ...onPool(rounds, { claim: claimLostSubmits }, READ_DEADLINE_MS),
})
