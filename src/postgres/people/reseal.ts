/** Seals again what people have: secrets of one-time codes, and answers that are kept for a day. */
import { answerSealId, type KeyMaterial, SealError, totpSealId } from '../../core/keys/material.ts'
import type { Queryable } from '../connection.ts'

/** Seals the secrets of one-time codes again: one for a user at most. */
export async function resealTotps(sql: Queryable, material: KeyMaterial, next: KeyMaterial): Promise<void> {
  const rows = await sql<{ user_id: string; sealed_secret: Buffer }[]>`
    SELECT user_id, sealed_secret FROM totps FOR NO KEY UPDATE`
  for (const { user_id: userId, sealed_secret } of rows) {
    const id = totpSealId(userId)
    await sql`
      UPDATE totps SET sealed_secret = ${next.seal(material.open(sealed_secret, id), id)} WHERE user_id = ${userId}`
  }
}

/** Seals the answers to management requests again. One that does not open is deleted. */
export async function resealAnswers(sql: Queryable, material: KeyMaterial, next: KeyMaterial): Promise<void> {
  const rows = await sql<{ caller: string; idempotency_key: string; sealed_answer: Buffer }[]>`
    SELECT caller, idempotency_key, sealed_answer FROM management_requests FOR NO KEY UPDATE`
  for (const { caller, idempotency_key, sealed_answer } of rows) {
    const sealed = sealedAgain(sealed_answer, answerSealId(caller, idempotency_key), material, next)
    await (sealed === null
      ? sql`DELETE FROM management_requests WHERE caller = ${caller} AND idempotency_key = ${idempotency_key}`
      : sql`
          UPDATE management_requests SET sealed_answer = ${sealed}
          WHERE caller = ${caller} AND idempotency_key = ${idempotency_key}`)
  }
}

function sealedAgain(sealed: Buffer, id: string, material: KeyMaterial, next: KeyMaterial): Buffer | null {
  try {
    return next.seal(material.open(sealed, id), id)
  } catch (error) {
    if (error instanceof SealError) return null
    throw error
  }
}
