/**
 * Records of requests with an Idempotency-Key: of calls, tasks, payments and operations. A record that is running belongs to
 * the request that claimed it. A task or a payment is bound to its key in the transaction that creates it, and the answer of an
 * operation is stored in its transaction. See docs/api-rules.md, "Idempotency".
 */
import { DEFAULT_CHAT_SECONDS } from '../../../schemas/config/catalog.ts'
import { answerSealId, type KeyMaterial, SealError } from '../../core/keys/material.ts'
import { assertCurrent } from '../accounts/master-key.ts'
import type { Queryable, Sql } from '../connection.ts'

/** Time for which a request that was cut off keeps its key, from the end of the longest time that it may take. */
const HELD_AFTER_SECONDS = 420
const RETENTION_SECONDS = 7 * 24 * 3600
/** The most expired records that one statement removes. */
const PURGE_ROWS = 10_000
/** Answers in this scope may hold keys, so they are kept sealed. */
const SEALED_SCOPE = 'actor:'

/** Whose key it is. */
export type IdempotencyScope = `${'account' | 'actor' | 'payments'}:${string}`

export interface IdempotencyClaim {
  readonly scope: IdempotencyScope
  readonly key: string
  /** Hash of the request: recognises another request under the same key. */
  readonly requestHash: Buffer
  readonly requestId: string
  /** The longest time that the request may take, seconds. */
  readonly maxSeconds?: number
}

export interface StoredAnswer {
  readonly status: number
  readonly headers: ReadonlyArray<readonly [string, string]>
  readonly body: Buffer
}

interface Known {
  readonly requestHash: Buffer
  readonly requestId: string
}

/** `claimed`: this request has the key. Else the stored state, with the hash of its request. */
export type ClaimOutcome =
  | { readonly outcome: 'claimed' }
  | ({ readonly outcome: 'running' | 'too_large' } & Known)
  | ({ readonly outcome: 'stored' } & Known & StoredAnswer)

interface RecordRow {
  state: 'running' | 'stored' | 'too_large'
  request_hash: Buffer
  request_id: string
  status: number | null
  headers: [string, string][] | null
  body: Buffer | null
}

const isSealed = ({ scope }: IdempotencyClaim): boolean => scope.startsWith(SEALED_SCOPE)

/** Takes over what has expired, and what was freed unless another request has bound a task or a payment to it. */
async function insertClaim(sql: Queryable, claim: IdempotencyClaim): Promise<boolean> {
  const { scope, key, requestHash, requestId, maxSeconds = DEFAULT_CHAT_SECONDS } = claim
  const rows = await sql`
    INSERT INTO idempotency_records AS record
      (scope, key, state, request_hash, request_id, frees_at, expires_at)
    VALUES (${scope}, ${key}, 'running', ${requestHash}, ${requestId},
      now() + make_interval(secs => ${maxSeconds + HELD_AFTER_SECONDS}), now() + make_interval(secs => ${RETENTION_SECONDS}))
    ON CONFLICT (scope, key) DO UPDATE SET
      state = 'running', request_hash = excluded.request_hash, request_id = excluded.request_id,
      subject = CASE WHEN record.expires_at > now() THEN record.subject END,
      frees_at = excluded.frees_at, expires_at = excluded.expires_at,
      status = NULL, headers = NULL, body = NULL
    WHERE record.expires_at <= now() OR (record.state = 'running' AND record.frees_at <= now()
      AND (record.subject IS NULL OR record.request_hash = excluded.request_hash))
    RETURNING 1`
  return rows.length > 0
}

/**
 * Claims the key for this request, or returns its stored state. Of concurrent requests, one gets it; a transaction that
 * claims makes the others wait for its end.
 */
export async function claimKey(
  sql: Queryable,
  material: KeyMaterial,
  claim: IdempotencyClaim,
): Promise<ClaimOutcome> {
  const { scope, key } = claim
  for (;;) {
    if (await insertClaim(sql, claim)) return { outcome: 'claimed' }
    const [row] = await sql<RecordRow[]>`
      SELECT state, request_hash, request_id, status, headers, body FROM idempotency_records
      WHERE scope = ${scope} AND key = ${key}`
    // Purged between the two statements: the key can be had now.
    if (row === undefined) continue
    const { state, request_hash: requestHash, request_id: requestId } = row
    if (state !== 'stored') return { outcome: state, requestHash, requestId }
    const { status, headers } = row
    const body = isSealed(claim) ? Buffer.from(material.open(row.body!, answerSealId(scope, key))) : row.body!
    return { outcome: 'stored', requestHash, requestId, status: status!, headers: headers!, body }
  }
}

/** Returns whether an earlier request with the key was answered, too large an answer included, or has its task. */
export async function isAnswered(sql: Sql, scope: IdempotencyScope, key: string): Promise<boolean> {
  const [row] = await sql<[{ is_answered: boolean }]>`
    SELECT EXISTS (
      SELECT FROM idempotency_records
      WHERE scope = ${scope} AND key = ${key} AND (state <> 'running' OR subject IS NOT NULL) AND expires_at > now()
    ) AS is_answered`
  return row.is_answered
}

/**
 * Keeps the answer for 7 days; null: it was too large to keep. It is replayed as the answer to the request
 * `originalRequestId`.
 * @throws Refusal `wrong_master_key` where the answer is sealed and the master key was replaced meanwhile
 */
export async function storeAnswer(
  sql: Queryable,
  material: KeyMaterial,
  claim: IdempotencyClaim,
  answer: StoredAnswer | null,
  originalRequestId: string = claim.requestId,
): Promise<void> {
  const { scope, key, requestId } = claim
  let body = answer?.body ?? null
  if (isSealed(claim) && body !== null) {
    await assertCurrent(sql, material)
    body = material.seal(body.toString(), answerSealId(scope, key))
  }
  await sql`
    UPDATE idempotency_records SET
      state = ${answer === null ? 'too_large' : 'stored'}, request_id = ${originalRequestId}, frees_at = NULL,
      expires_at = now() + make_interval(secs => ${RETENTION_SECONDS}),
      status = ${answer?.status ?? null},
      headers = ${answer === null ? null : sql.json(answer.headers as unknown as string[])},
      body = ${body}
    WHERE scope = ${scope} AND key = ${key} AND request_id = ${requestId} AND state = 'running'`
}

/** Frees the key: the request has no answer that could be replayed. What is bound to the key stays bound. */
export async function freeKey(sql: Sql, { scope, key, requestId }: IdempotencyClaim): Promise<void> {
  await sql`
    UPDATE idempotency_records SET
      frees_at = now(), expires_at = CASE WHEN subject IS NULL THEN now() ELSE expires_at END
    WHERE scope = ${scope} AND key = ${key} AND request_id = ${requestId} AND state = 'running'`
}

interface Binding {
  readonly subject: string
  readonly requestHash: Buffer
}

/** Returns the task or the payment that is bound to the key, with the hash of its request; null without one. */
export async function findBinding(
  sql: Queryable,
  { scope, key }: Pick<IdempotencyClaim, 'scope' | 'key'>,
): Promise<Binding | null> {
  const [row] = await sql<{ subject: string; request_hash: Buffer }[]>`
    SELECT subject, request_hash FROM idempotency_records
    WHERE scope = ${scope} AND key = ${key} AND subject IS NOT NULL AND expires_at > now()`
  return row === undefined ? null : { subject: row.subject, requestHash: row.request_hash }
}

/**
 * Binds a task or a payment to the key, as part of the transaction that creates it. Returns what is bound to the key
 * already; null where it is bound now. Waits for the end of a transaction that binds the same key.
 */
export async function bindSubject(
  sql: Queryable,
  { scope, key, requestHash, requestId }: IdempotencyClaim,
  subject: string,
  { isForEver = false }: { readonly isForEver?: boolean } = {},
): Promise<Binding | null> {
  const expiry = isForEver ? sql`'infinity'` : sql`now() + make_interval(secs => ${RETENTION_SECONDS})`
  const bound = await sql`
    INSERT INTO idempotency_records AS record
      (scope, key, state, request_hash, request_id, subject, frees_at, expires_at)
    VALUES (${scope}, ${key}, 'running', ${requestHash}, ${requestId}, ${subject}, now(), ${expiry})
    ON CONFLICT (scope, key) DO UPDATE SET
      state = CASE WHEN record.expires_at > now() THEN record.state ELSE 'running' END,
      frees_at = coalesce(record.frees_at, now()), expires_at = excluded.expires_at,
      request_hash = excluded.request_hash, subject = excluded.subject
    WHERE record.subject IS NULL OR record.expires_at <= now()
    RETURNING 1`
  return bound.length > 0 ? null : findBinding(sql, { scope, key })
}

/** Gives up the key of a task that came to nothing: the next request with the key makes another one. */
export async function unbindSubject(sql: Queryable, subject: string): Promise<void> {
  await sql`UPDATE idempotency_records SET subject = NULL WHERE subject = ${subject}`
}

/** Removes some of what has expired; answers how many. */
export async function purgeRecords(sql: Sql): Promise<number> {
  const gone = await sql`
    DELETE FROM idempotency_records WHERE (scope, key) IN (
      SELECT scope, key FROM idempotency_records WHERE expires_at <= now() LIMIT ${PURGE_ROWS})`
  return gone.count
}

/**
 * Seals the answers of operations again. One that does not open is deleted. An expired one is left out: who claims its key
 * waits for this transaction.
 */
export async function resealAnswers(
  sql: Queryable,
  reseal: (sealed: Buffer, sealId: string) => Buffer,
): Promise<void> {
  const rows = await sql<{ scope: string; key: string; body: Buffer }[]>`
    SELECT scope, key, body FROM idempotency_records
    WHERE scope LIKE ${`${SEALED_SCOPE}%`} AND body IS NOT NULL AND expires_at > now() FOR NO KEY UPDATE`
  for (const { scope, key, body } of rows) {
    const which = sql`scope = ${scope} AND key = ${key}`
    try {
      const sealed = reseal(body, answerSealId(scope, key))
      await sql`UPDATE idempotency_records SET body = ${sealed} WHERE ${which}`
    } catch (error) {
      if (!(error instanceof SealError)) throw error
      await sql`DELETE FROM idempotency_records WHERE ${which}`
    }
  }
}
