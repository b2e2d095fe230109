/** Long jobs: verify, rebuild and import. An operation starts one, a process in the background runs it. */
import { fromRow, type SnakeCase } from '../../core/json/snake-case.ts'
import { newId } from '../../core/keys/ids.ts'
import { recordOperation } from '../accounts/audit-record.ts'
import { Refusal } from '../billing/refusal.ts'
import { addWithin } from '../collections.ts'
import type { Queryable, Sql } from '../connection.ts'
import { jsonValue } from '../json.ts'
import type { Listing } from '../listing.ts'
import type { Transaction } from '../transaction.ts'

export type JobKind = 'verify' | 'rebuild' | 'import'
type JobState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled'

export interface Job {
  readonly id: string
  readonly kind: JobKind
  readonly state: JobState
  /** Null for a job of the installation. */
  readonly accountId: string | null
  /** Of an import the knowledge base. */
  readonly subjectId: string | null
  readonly input: unknown
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

type JobRow = SnakeCase<Job>

const columns = (sql: Queryable) =>
  sql`id, kind, state, account_id, subject_id, input, done, total, result, error, created_by, created_at, started_at, ended_at`

/** A job whose process has sent no heartbeat for this long runs again. */
const LOST_SECONDS = 60
/** A job that crashes its process every time would do so forever. */
const MAX_ATTEMPTS = 3
const LOST_TOO_OFTEN = `The process that ran it ended ${MAX_ATTEMPTS} times before the job did, so it is not run again: the log of the service says why`

export interface NewJob {
  readonly kind: JobKind
  readonly accountId?: string | null
  readonly subjectId?: string | null
  readonly input?: unknown
}

/** @throws Refusal `job_open` while one of its kind, about the same subject, has not ended; `limit_reached` */
export const startJob = (sql: Sql, job: NewJob): Promise<Job> => {
  const { kind, accountId = null } = job
  if (kind !== 'import' || accountId === null) return insertJob(sql, job)
  const entries = (present: Transaction) => present`
    SELECT FROM jobs WHERE kind = 'import' AND account_id = ${accountId} AND ended_at IS NULL`
  return addWithin(sql, { limit: 'imports_per_account', ownerId: accountId, entries }, (transaction) =>
    insertJob(transaction, job),
  )
}

async function insertJob(
  sql: Queryable,
  { kind, accountId = null, subjectId = null, input = null }: NewJob,
): Promise<Job> {
  const [row] = await sql<JobRow[]>`
    INSERT INTO jobs (id, kind, account_id, subject_id, input, created_by)
    VALUES (
      ${newId('job')}, ${kind}, ${accountId}, ${subjectId},
      ${input === null ? sql`NULL` : jsonValue(sql, input)}, audit_actor())
    ON CONFLICT (kind, coalesce(subject_id, '')) WHERE ended_at IS NULL DO NOTHING
    RETURNING ${columns(sql)}`
  if (row === undefined) {
    const of = subjectId === null ? '' : ` of ${subjectId}`
    throw new Refusal('job_open', `${kind === 'import' ? 'An' : 'A'} ${kind}${of} is under way already`)
  }
  await recordOperation(sql, { action: `job.${kind}`, accountId, subjectId: row.id })
  return fromRow<Job>(row)
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
  const job = fromRow<Job>(row)
  await recordOperation(sql, { action: 'job.cancel', accountId: job.accountId, subjectId: id })
  return job
}

/** @throws Refusal `job_not_found` */
export async function readJob(sql: Queryable, id: string): Promise<Job> {
  const [row] = await sql<JobRow[]>`SELECT ${columns(sql)} FROM jobs WHERE id = ${id}`
  if (row === undefined) throw new Refusal('job_not_found', `There is no job ${id}`)
  return fromRow<Job>(row)
}

export interface JobsQuery extends Listing {
  readonly kinds: readonly JobKind[]
  readonly subjectId?: string
}

/** Returns the newest jobs of these kinds, or those of them about one subject. */
export async function listJobs(
  sql: Queryable,
  { kinds, subjectId, after = null, limit = null }: JobsQuery,
): Promise<Job[]> {
  const rows = await sql<JobRow[]>`
    SELECT ${columns(sql)} FROM jobs
    WHERE kind = ANY (${kinds as JobKind[]}::text[])
      ${subjectId === undefined ? sql`` : sql`AND subject_id = ${subjectId}`}
      ${after === null ? sql`` : sql`AND id < ${after}`}
    ORDER BY id DESC LIMIT ${limit}`
  return rows.map(fromRow<Job>)
}

/**
 * Claims a job of these kinds that waits, or whose process is gone: accounts take turns, the one whose last job began
 * earliest first. Null where there is none. Fails those whose processes
 * have gone too often.
 */
export async function claimJob(sql: Sql, kinds: readonly JobKind[]): Promise<Job | null> {
  const isLost = sql`touched_at < now() - make_interval(secs => ${LOST_SECONDS})`
  await sql`
    UPDATE jobs SET state = 'failed', error = ${LOST_TOO_OFTEN}, ended_at = now()
    WHERE ended_at IS NULL AND kind = ANY (${kinds as JobKind[]}::text[])
      AND state = 'running' AND ${isLost} AND attempts >= ${MAX_ATTEMPTS}`
  const [row] = await sql<JobRow[]>`
    UPDATE jobs SET
      state = 'running', started_at = now(), touched_at = now(), done = 0, total = 0, attempts = attempts + 1
    WHERE id = (
      SELECT id FROM jobs AS j
      WHERE ended_at IS NULL AND kind = ANY (${kinds as JobKind[]}::text[])
        AND (state = 'queued' OR ${isLost})
      ORDER BY (SELECT max(started_at) FROM jobs AS o WHERE o.account_id = j.account_id) NULLS FIRST, created_at
      LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING ${columns(sql)}`
  return row === undefined ? null : fromRow<Job>(row)
}

/** Gives a running job back: the next process to look for one runs it, and the attempt does not count. */
export async function releaseJob(sql: Sql, id: string): Promise<void> {
  await sql`
    UPDATE jobs SET state = 'queued', attempts = attempts - 1 WHERE id = ${id} AND state = 'running'`
}

/** Reports progress. Returns false where the job was cancelled: its work is to end. */
export async function reportJob(sql: Sql, id: string, done: number, total: number): Promise<boolean> {
  const { count } = await sql`
    UPDATE jobs SET done = ${done}, total = ${total}, touched_at = now() WHERE id = ${id} AND state = 'running'`
  return count > 0
}

/** An error ends a job as failed. Its result says more. */
export interface JobOutcome {
  readonly result?: unknown
  readonly error?: string
}

/** Ends a running job. */
export async function endJob(sql: Sql, id: string, { result, error }: JobOutcome): Promise<void> {
  await sql`
    UPDATE jobs SET
      state = ${error === undefined ? 'done' : 'failed'}, error = ${error ?? null}, ended_at = now(),
      done = CASE WHEN ${error ?? null}::text IS NULL THEN total ELSE done END,
      result = ${result === undefined ? sql`NULL` : jsonValue(sql, result)}
    WHERE id = ${id} AND state = 'running'`
}
