/** Runs long jobs, one at a time in this process. */

import type { Job, JobKind, JobOutcome } from '../../src/postgres/operation/jobs.ts'
import type { Jobs } from '../../src/postgres/operation/repository.ts'
import type { PipelineLog } from '../settlement/retrying.ts'

/** A job begins within this time. */
const LOOK_INTERVAL_MS = 2_000
/** A running job sends a heartbeat at this interval, however long its steps take. After 60 s without one it runs again. */
const TOUCH_INTERVAL_MS = 15_000
/** Each report of progress is a small write. */
const REPORT_INTERVAL_MS = 500

/** Reports steps that are done. Rejects where the job is to stop: `RunJob` passes that on. */
export type ReportProgress = (done: number, total: number) => Promise<void>

interface RanJob extends JobOutcome {
  /** Called once the outcome is stored: a job that is run again still needs what this removes. */
  readonly onEnded?: () => Promise<unknown>
}

/** Does a job. An error that it throws fails the job. */
export type RunJob = (job: Job, report: ReportProgress) => Promise<RanJob>

interface JobDeps {
  readonly database: { readonly jobs: Jobs }
  /** The kinds that this process runs. */
  readonly work: Readonly<Partial<Record<JobKind, RunJob>>>
  readonly log: PipelineLog
  readonly touchMs?: number
}

interface RunningJobs {
  /** Begins no other job, and ends the one that runs: another process runs it again. */
  stop(): Promise<void>
}

/** The job was cancelled, or this process ends. */
class Stopped extends Error {}

export function runJobs(deps: JobDeps): RunningJobs {
  let isStopping = false
  let running: Promise<void> | null = null
  const look = () => {
    if (running !== null || isStopping) return
    running = takeNext(deps, () => isStopping).finally(() => {
      running = null
    })
  }
  const timer = setInterval(look, LOOK_INTERVAL_MS)
  return {
    async stop() {
      isStopping = true
      clearInterval(timer)
      await running
    },
  }
}

async function takeNext(
  { database, work, log, touchMs = TOUCH_INTERVAL_MS }: JobDeps,
  isStopping: () => boolean,
): Promise<void> {
  let job: Job | null
  try {
    job = await database.jobs.claim(Object.keys(work) as JobKind[])
  } catch {
    // PostgreSQL is down: the health check reports it, and the next look finds the job.
    return
  }
  if (job === null) return
  const { id, kind } = job
  let reportedAt = 0
  let progress: Parameters<ReportProgress> = [0, 0]
  // While PostgreSQL is down, no other process claims the job either.
  const touching = setInterval(() => void database.jobs.report(id, ...progress).catch(() => false), touchMs)
  const report: ReportProgress = async (done, total) => {
    if (isStopping()) throw new Stopped()
    progress = [done, total]
    if (done < total && Date.now() - reportedAt < REPORT_INTERVAL_MS) return
    reportedAt = Date.now()
    if (!(await database.jobs.report(id, done, total))) throw new Stopped()
  }
  try {
    const { onEnded, ...outcome } = await work[kind]!(job, report)
    await database.jobs.end(id, outcome)
    await onEnded?.().catch((error) =>
      log.warn({ job: id, kind, err: error }, 'Failed to clean up after a job'),
    )
    log.info({ job: id, kind }, 'Job ended')
  } catch (error) {
    // A cancelled job stays cancelled.
    if (error instanceof Stopped) return void (await database.jobs.release(id).catch(() => undefined))
    log.error({ job: id, kind, err: error }, 'Job failed')
    await database.jobs.end(id, { error: (error as Error).message }).catch(() => undefined)
  } finally {
    clearInterval(touching)
  }
}
