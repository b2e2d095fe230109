/** Records of requests with an Idempotency-Key. See docs/api-rules.md, "Idempotency". */
import type { Sql } from '../connection.ts'

/** Time for which an interrupted call keeps its key. */
const RUNNING_HOLD_SECONDS = 600
export const RETENTION_SECONDS = 7 * 24 * 3600
/** Expired records are removed so many at a time. */
const PURGE_ROWS = 1000

export interface IdempotencyClaim {
  readonly accountId: string
  readonly key: string
  /** Hash of the request: recognises another request under the same key. */
  readonly requestHash: Buffer
  readonly requestId: string
}

export interface StoredAnswer {
  readonly status: number
  readonly headers: ReadonlyArray<readonly [string, string]>
  readonly body: Buffer
}

/** `claimed`: this request has the key. Else the stored state, with the hash of its request. */
export type ClaimOutcome =
  | { readonly outcome: 'claimed' }
  | { readonly outcome: 'running' | 'too_large'; readonly requestHash: Buffer; readonly requestId: string }
  | ({ readonly outcome: 'stored'; readonly requestHash: Buffer; readonly requestId: string } & StoredAnswer)

interface RecordRow {
  state: 'running' | 'stored' | 'too_large'
  request_hash: Buffer
  request_id: string
  status: number | null
  headers: [string, string][] | null
  body: Buffer | null
}

async function insert(
  sql: Sql,
  { accountId, key, requestHash, requestId }: IdempotencyClaim,
): Promise<boolean> {
  const rows = await sql`
    INSERT INTO idempotency_records AS record
      (account_id, key, state, request_hash, request_id, frees_at, expires_at)
    VALUES (${accountId}, ${key}, 'running', ${requestHash}, ${requestId},
      now() + make_interval(secs => ${RUNNING_HOLD_SECONDS}), now() + make_interval(secs => ${RETENTION_SECONDS}))
    ON CONFLICT (account_id, key) DO UPDATE SET
      state = 'running', request_hash = excluded.request_hash, request_id = excluded.request_id,
      frees_at = excluded.frees_at, expires_at = excluded.expires_at,
      status = NULL, headers = NULL, body = NULL
    WHERE record.expires_at <= now() OR (record.state = 'running' AND record.frees_at <= now())
    RETURNING 1`
  return rows.length > 0
}

/** Claims the key for this request, or returns its stored state. Of concurrent requests, one gets it. */
export async function claimIdempotencyKey(sql: Sql, claim: IdempotencyClaim): Promise<ClaimOutcome> {
  for (;;) {
    if (await insert(sql, claim)) return { outcome: 'claimed' }
    const [row] = await sql<RecordRow[]>`
      SELECT state, request_hash, request_id, status, headers, body FROM idempotency_records
      WHERE account_id = ${claim.accountId} AND key = ${claim.key}`
    // Freed between the two statements: the key can be had now.
    if (row === undefined) continue
    const { state, request_hash: requestHash, request_id: requestId } = row
    if (state !== 'stored') return { outcome: state, requestHash, requestId }
    const { status, headers, body } = row
    return { outcome: 'stored', requestHash, requestId, status: status!, headers: headers!, body: body! }
  }
}

/** Returns whether an earlier request with the key was answered: its answer is stored, or was too large for that. */
export async function isIntentAnswered(sql: Sql, accountId: string, key: string): Promise<boolean> {
  const [row] = await sql<[{ is_answered: boolean }]>`
    SELECT EXISTS (
      SELECT FROM idempotency_records
      WHERE account_id = ${accountId} AND key = ${key} AND state <> 'running' AND expires_at > now()
    ) AS is_answered`
  return row.is_answered
}

/**
 * Keeps the answer for 7 days; null: it was too large to keep. It is replayed as the answer to the request
 * `originalRequestId`.
 */
export async function storeIdempotentAnswer(
  sql: Sql,
  claim: IdempotencyClaim,
  answer: StoredAnswer | null,
  originalRequestId: string = claim.requestId,
): Promise<void> {
  await sql`
    UPDATE idempotency_records SET
      state = ${answer === null ? 'too_large' : 'stored'}, request_id = ${originalRequestId}, frees_at = NULL,
      expires_at = now() + make_interval(secs => ${RETENTION_SECONDS}),
      status = ${answer?.status ?? null},
      headers = ${answer === null ? null : sql.json(answer.headers as unknown as string[])},
      body = ${answer?.body ?? null}
    WHERE account_id = ${claim.accountId} AND key = ${claim.key}
      AND request_id = ${claim.requestId} AND state = 'running'`
}

/** Frees the key: the request has no answer that could be replayed. */
export async function freeIdempotencyKey(sql: Sql, claim: IdempotencyClaim): Promise<void> {
  await sql`
    DELETE FROM idempotency_records
    WHERE account_id = ${claim.accountId} AND key = ${claim.key}
      AND request_id = ${claim.requestId} AND state = 'running'`
}

/** Removes some of what has expired; answers how many. */
export async function purgeIdempotencyRecords(sql: Sql): Promise<number> {
  const gone = await sql`
    DELETE FROM idempotency_records WHERE (account_id, key) IN (
      SELECT account_id, key FROM idempotency_records WHERE expires_at <= now() LIMIT ${PURGE_ROWS})`
  return gone.count
}
