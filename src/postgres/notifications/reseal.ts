/** Seals what notifications keep secret with another master key. */
import { type KeyMaterial, mailSealId, webhookSealId } from '../../core/keys/material.ts'
import type { Queryable } from '../connection.ts'

/** Seals the secrets again with another master key. */
export async function resealWebhooks(
  sql: Queryable,
  material: KeyMaterial,
  next: KeyMaterial,
): Promise<void> {
  const rows = await sql<{ id: string; sealed_secret: Buffer; sealed_former_secret: Buffer | null }[]>`
    SELECT id, sealed_secret, sealed_former_secret FROM webhook_endpoints FOR NO KEY UPDATE`
  for (const { id, sealed_secret, sealed_former_secret: former } of rows) {
    const again = (sealed: Buffer) => next.seal(material.open(sealed, webhookSealId(id)), webhookSealId(id))
    await sql`
      UPDATE webhook_endpoints SET sealed_secret = ${again(sealed_secret)},
        sealed_former_secret = ${former === null ? null : again(former)}
      WHERE id = ${id}`
  }
}

/** Seals mails that were not sent yet again with another master key. */
export async function resealMails(sql: Queryable, material: KeyMaterial, next: KeyMaterial): Promise<void> {
  const rows = await sql<{ id: string; sealed_mail: Buffer }[]>`
    SELECT id, sealed_mail FROM deliveries WHERE sealed_mail IS NOT NULL FOR NO KEY UPDATE`
  for (const { id, sealed_mail } of rows) {
    const sealed = next.seal(material.open(sealed_mail, mailSealId(id)), mailSealId(id))
    await sql`UPDATE deliveries SET sealed_mail = ${sealed} WHERE id = ${id}`
  }
}
