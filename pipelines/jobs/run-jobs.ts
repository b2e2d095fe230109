/** Runs the jobs that operators start, one at a time in this process. */
import type { Rebuilt } from '../../schemas/management/jobs.ts'
import type { AuditedLog } from '../../src/postgres/billing/audit-report.ts'
import type { WalletAudits } from '../../src/postgres/billing/repository.ts'
import type { Job } from '../../src/postgres/operation/jobs.ts'
import type { Operation } from '../../src/postgres/operation/repository.ts'
import { type LogRebuildDeps, rebuildLog } from '../call-log/rebuild.ts'
import { auditReportShape } from '../management/shapes.ts'
import type { PipelineLog } from '../settlement/retrying.ts'

/** A job begins within this time. */
const LOOK_INTERVAL_MS = 1_000
/** Each report of progress is a small write. */
const REPORT_INTERVAL_MS = 500

export interface JobDeps {
  readonly database: LogRebuildDeps['database'] &
    Pick<Operation, 'claimJob' | 'reportJob' | 'endJob'> &
    Pick<WalletAudits, 'verifyWallets'>
  readonly callLog: LogRebuildDeps['callLog'] & AuditedLog
  readonly log: PipelineLog
}

export interface RunningJobs {
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
    running = next(deps, () => isStopping).finally(() => {
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

async function next({ database, callLog, log }: JobDeps, isStopping: () => boolean): Promise<void> {
  let job: Job | null
  try {
    job = await database.claimJob()
  } catch {
    // PostgreSQL is away: the health check says so, and the next look finds the job.
    return
  }
  if (job === null) return
  const { id, kind } = job
  let reportedAt = 0
  const report = async (done: number, total: number) => {
    if (isStopping()) throw new Stopped()
    if (done < total && Date.now() - reportedAt < REPORT_INTERVAL_MS) return
    reportedAt = Date.now()
    if (!(await database.reportJob(id, done, total))) throw new Stopped()
  }
  try {
    const result =
      kind === 'verify'
        ? auditReportShape(await database.verifyWallets(callLog, report))
        : ((await rebuildLog({
            database,
            callLog,
            onProgress: ({ rows, total }) => report(rows, total),
          })) satisfies Rebuilt)
    await database.endJob(id, { result })
    log.info({ job: id, kind }, 'Job ended')
  } catch (error) {
    if (error instanceof Stopped) return
    log.error({ job: id, kind, err: error }, 'Job failed')
    await database.endJob(id, { error: (error as Error).message }).catch(() => undefined)
  }
}
