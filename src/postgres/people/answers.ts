/** Answers to management requests under an Idempotency-Key. */
import { answerSealId, type KeyMaterial } from '../../core/keys/material.ts'
import { assertCurrent } from '../accounts/master-key.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Queryable, Sql } from '../connection.ts'

const KEPT_HOURS = 24

export interface KeyedRequest {
  /** The actor. */
  readonly caller: string
  readonly idempotencyKey: string
  /** SHA-256 of the operation and its input. */
  readonly requestHash: Buffer
}

const boundTo = ({ caller, idempotencyKey }: KeyedRequest): string => answerSealId(caller, idempotencyKey)

/**
 * Returns the answer to an earlier request under the same key, as JSON; null without one. Holds the key until the end
 * of the transaction.
 * @throws Refusal `idempotency_key_reuse` for another request under the same key
 */
export async function findManagementAnswer(
  sql: Queryable,
  material: KeyMaterial,
  request: KeyedRequest,
): Promise<string | null> {
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${boundTo(request)}, 0))`
  const [row] = await sql<{ request_hash: Buffer; sealed_answer: Buffer }[]>`
    SELECT request_hash, sealed_answer FROM management_requests
    WHERE caller = ${request.caller} AND idempotency_key = ${request.idempotencyKey}
      AND created_at > now() - make_interval(hours => ${KEPT_HOURS})`
  if (row === undefined) return null
  if (!row.request_hash.equals(request.requestHash))
    throw new Refusal('idempotency_key_reuse', 'This Idempotency-Key was used for another request')
  return material.open(row.sealed_answer, boundTo(request))
}

/**
 * Stores the answer, as part of the transaction that made it.
 * @throws Refusal `wrong_master_key` where the master key was replaced meanwhile
 */
export async function storeManagementAnswer(
  sql: Queryable,
  material: KeyMaterial,
  request: KeyedRequest,
  answer: string,
): Promise<void> {
  const { caller, idempotencyKey, requestHash } = request
  await assertCurrent(sql, material)
  await sql`
    INSERT INTO management_requests (caller, idempotency_key, request_hash, sealed_answer)
    VALUES (${caller}, ${idempotencyKey}, ${requestHash}, ${material.seal(answer, boundTo(request))})
    ON CONFLICT (caller, idempotency_key)
    DO UPDATE SET request_hash = EXCLUDED.request_hash, sealed_answer = EXCLUDED.sealed_answer, created_at = now()`
}

export async function purgeManagementAnswers(sql: Sql): Promise<void> {
  await sql`DELETE FROM management_requests WHERE created_at < now() - make_interval(hours => ${KEPT_HOURS})`
}
