/** Acts of long jobs. */
import {
  cancelJob,
  listJobs,
  type Rebuilt,
  showJob,
  startJob,
  type Verified,
} from '../../../schemas/management/jobs.ts'
import type { Job } from '../../../src/postgres/operation/jobs.ts'
import { implement } from '../act.ts'

const instant = (at: Date | null): string | null => at?.toISOString() ?? null

const jobShape = ({ id, kind, state, done, total, result, error, ...job }: Job) => ({
  id,
  kind,
  state,
  done: Number(done),
  total: Number(total),
  verified: kind === 'verify' ? (result as Verified | null) : null,
  rebuilt: kind === 'rebuild' ? (result as Rebuilt | null) : null,
  error,
  created_by: job.createdBy,
  created_at: job.createdAt.toISOString(),
  started_at: instant(job.startedAt),
  ended_at: instant(job.endedAt),
})

export const jobActs = [
  implement(startJob, async ({ write }, { kind }) =>
    jobShape(await write((database) => database.startJob(kind))),
  ),
  implement(listJobs, async ({ database }, { kind = null, limit }) => ({
    object: 'list' as const,
    data: (await database.listJobs(kind, limit)).map(jobShape),
  })),
  implement(showJob, async ({ database }, { id }) => jobShape(await database.readJob(id))),
  implement(cancelJob, async ({ write }, { id }) =>
    jobShape(await write((database) => database.cancelJob(id))),
  ),
]
