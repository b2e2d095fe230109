/** Long jobs: verify and rebuild. An operator starts one, a settler runs it. */
import { newId } from '../../core/keys/ids.ts'
import { recordAct } from '../accounts/audit-record.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Queryable, Sql } from '../connection.ts'
import { jsonValue } from '../json.ts'

export const JOB_KINDS = ['verify', 'rebuild'] as const
export type JobKind = (typeof JOB_KINDS)[number]
export type JobState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled'

export interface Job {
  readonly id: string
  readonly kind: JobKind
  readonly state: JobState
  /** Steps that are done, of `total`; 0 before it is known. */
  readonly done: bigint
  readonly total: bigint
  readonly result: unknown
  readonly error: string | null
  readonly createdBy: string
  readonly createdAt: Date
  readonly startedAt: Date | null
  readonly endedAt: Date | null
}

interface JobRow {
  id: string
  kind: JobKind
  state: JobState
  done: bigint
  total: bigint
  result: unknown
  error: string | null
  created_by: string
  created_at: Date
  started_at: Date | null
  ended_at: Date | null
}

const jobOfRow = ({ created_by, created_at, started_at, ended_at, ...row }: JobRow): Job => ({
  ...row,
  done: BigInt(row.done),
  total: BigInt(row.total),
  createdBy: created_by,
  createdAt: created_at,
  startedAt: started_at,
  endedAt: ended_at,
})

const columns = (sql: Queryable) =>
  sql`id, kind, state, done, total, result, error, created_by, created_at, started_at, ended_at`

/** A job whose process has given no sign of life for so long is run again. */
const LOST_SECONDS = 60

/** @throws Refusal `job_open` while one of its kind has not ended */
export async function startJob(sql: Sql, kind: JobKind): Promise<Job> {
  const [row] = await sql<JobRow[]>`
    INSERT INTO jobs (id, kind, created_by) VALUES (${newId('job')}, ${kind}, audit_actor())
    ON CONFLICT (kind) WHERE ended_at IS NULL DO NOTHING
    RETURNING ${columns(sql)}`
  if (row === undefined) throw new Refusal('job_open', `A ${kind} is under way already`)
  await recordAct(sql, {
    action: `job.${kind}`,
    accountId: null,
    subjectId: row.id,
    before: null,
    after: null,
  })
  return jobOfRow(row)
}

/** @throws Refusal `job_not_found`, `job_ended` */
export async function cancelJob(sql: Sql, id: string): Promise<Job> {
  const [row] = await sql<JobRow[]>`
    UPDATE jobs SET state = 'cancelled', ended_at = now() WHERE id = ${id} AND ended_at IS NULL
    RETURNING ${columns(sql)}`
  if (row === undefined) {
    const { state } = await readJob(sql, id)
    throw new Refusal('job_ended', `The job ${id} has ended: it is ${state}`)
  }
  await recordAct(sql, { action: 'job.cancel', accountId: null, subjectId: id, before: null, after: null })
  return jobOfRow(row)
}

/** @throws Refusal `job_not_found` */
export async function readJob(sql: Queryable, id: string): Promise<Job> {
  const [row] = await sql<JobRow[]>`SELECT ${columns(sql)} FROM jobs WHERE id = ${id}`
  if (row === undefined) throw new Refusal('job_not_found', `There is no job ${id}`)
  return jobOfRow(row)
}

/** Returns the newest jobs of a kind, or of all. */
export async function listJobs(sql: Queryable, kind: JobKind | null, limit: number): Promise<Job[]> {
  const rows = await sql<JobRow[]>`
    SELECT ${columns(sql)} FROM jobs WHERE ${kind}::text IS NULL OR kind = ${kind}
    ORDER BY created_at DESC LIMIT ${limit}`
  return rows.map(jobOfRow)
}

/** Claims a job that waits, or whose process is gone; null where there is none. */
export async function claimJob(sql: Sql): Promise<Job | null> {
  const [row] = await sql<JobRow[]>`
    UPDATE jobs SET state = 'running', started_at = now(), touched_at = now(), done = 0, total = 0
    WHERE id = (
      SELECT id FROM jobs
      WHERE ended_at IS NULL
        AND (state = 'queued' OR touched_at < now() - make_interval(secs => ${LOST_SECONDS}))
      ORDER BY created_at LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING ${columns(sql)}`
  return row === undefined ? null : jobOfRow(row)
}

/** Reports progress. Returns false where the job was cancelled: its work is to end. */
export async function reportJob(sql: Sql, id: string, done: number, total: number): Promise<boolean> {
  const { count } = await sql`
    UPDATE jobs SET done = ${done}, total = ${total}, touched_at = now() WHERE id = ${id} AND state = 'running'`
  return count > 0
}

/** Ends a running job with its result, or with the error that ended it. */
export async function endJob(
  sql: Sql,
  id: string,
  outcome: { readonly result: unknown } | { readonly error: string },
): Promise<void> {
  const [result, error] = 'error' in outcome ? [null, outcome.error] : [outcome.result, null]
  await sql`
    UPDATE jobs SET
      state = ${error === null ? 'done' : 'failed'}, error = ${error}, ended_at = now(),
      done = CASE WHEN ${error}::text IS NULL THEN total ELSE done END,
      result = ${result === null ? sql`NULL` : jsonValue(sql, result)}
    WHERE id = ${id} AND state = 'running'`
}
