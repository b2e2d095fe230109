/** Tasks, and records of lost submits. The row is the truth; a transition names the version that was read. */
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
  listLostSubmits,
  recordFinding,
  sumLostSubmits,
} from './lost-submits.ts'
import { createTask, hasIntent, moveTask } from './tasks.ts'

export type Tasks = ReturnType<typeof openTasks>

export const openTasks = ({ main }: Pools) => ({
  ...onPool(main, { applyTransition: moveTask, removeFiles }, BOOKING_DEADLINE_MS),
  ...onPool(
    main,
    {
      createTask,
      hasIntent,
      readTasks,
      findTask,
      findResponseTask,
      listTasks,
      listAllTasks,
      listOpenJobs,
      deleteTaskRecord,
      claimStaleTasks,
      findOverdueTasks,
      touchTasks,
      countOpenTasks,
      recordObjects,
      findExpiredObjects,
      removeObjects,
    },
    READ_DEADLINE_MS,
  ),
})

export type LostSubmits = ReturnType<typeof openLostSubmits>

export const openLostSubmits = ({ main }: Pools) => ({
  ...onPool(main, { recordFinding, closeLostSubmit }, BOOKING_DEADLINE_MS),
  ...onPool(
    main,
    { claimLostSubmits, listLostSubmits, checkLostSubmit, countLostSubmits, sumLostSubmits },
    READ_DEADLINE_MS,
  ),
})
