/** Work that a task worker repeats: each finds in the rows what is due. */

import type { TaskSweep } from '../../../pipelines/tasks/worker/sweep.ts'
import type { TaskWork } from '../../../pipelines/tasks/worker/work.ts'
import type { Keys } from '../../postgres/accounts/repository.ts'
import type { Journals } from '../../postgres/operation/repository.ts'
import type { Log } from '../../telemetry/log.ts'
import { repeatUnlessBusy } from '../gateway/engine-watch.ts'

/** A third of the lease of a submitting process. */
const TOUCH_INTERVAL_MS = 10_000
const SWEEP_INTERVAL_MS = 2_000
const LOST_INTERVAL_MS = 5_000
const EXPIRY_INTERVAL_MS = 60_000
const NOTICE_INTERVAL_MS = 60_000

interface SweepDeps {
  readonly work: Pick<TaskWork, 'touch'>
  readonly sweep: Pick<TaskSweep, 'tasks' | 'objects'>
  readonly followLost: () => Promise<void>
  readonly database: {
    readonly journals: Pick<Journals, 'recordSilent'>
    readonly keys: Pick<Keys, 'recordExpiring'>
  }
  readonly log: Pick<Log, 'warn'>
}

type Sweep = readonly [intervalMs: number, what: string, run: () => Promise<unknown>]

const listSweeps = ({ work, sweep, followLost, database }: SweepDeps): readonly Sweep[] => [
  [TOUCH_INTERVAL_MS, 'touch tasks', () => work.touch()],
  [SWEEP_INTERVAL_MS, 'sweep tasks', () => sweep.tasks()],
  [LOST_INTERVAL_MS, 'ask about lost submits', followLost],
  [EXPIRY_INTERVAL_MS, 'remove expired files', () => sweep.objects()],
  [NOTICE_INTERVAL_MS, 'record notices of silent journals', () => database.journals.recordSilent()],
  [NOTICE_INTERVAL_MS, 'record notices of expiring keys', () => database.keys.recordExpiring()],
]

/** Starts the timers. A round that fails is logged, and done again at the next. */
export const startSweeps = (deps: SweepDeps): readonly NodeJS.Timeout[] =>
  listSweeps(deps).map(([intervalMs, what, run]) =>
    repeatUnlessBusy(intervalMs, () =>
      run().then(
        () => {},
        (error: unknown) => deps.log.warn({ err: error }, `Failed to ${what}; retrying`),
      ),
    ),
  )
