/** Saved cards. Reports of the provider may come in any order: the newest card counts, and a removed one stays removed. */
import type { SavedMethod } from '../../../schemas/payments/payment.ts'
import type { MethodNotice } from '../../../schemas/payments/provider.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'
import type { Queryable } from '../connection.ts'

type MethodRow = SnakeCase<SavedMethod>

/** Lists the cards of an account, the one that pays first. */
export async function listMethods(sql: Queryable, accountId: string): Promise<SavedMethod[]> {
  const rows = await sql<MethodRow[]>`
    SELECT * FROM payment_methods WHERE account_id = ${accountId} AND removed_at IS NULL
    ORDER BY created_at DESC, id DESC`
  return rows.map(({ account_id, created_at, id, brand, last4, expires }) => ({
    id,
    accountId: account_id,
    brand,
    last4,
    expires,
    createdAt: created_at,
  }))
}

/** Takes a report of a card. Returns false where it belongs to no account. */
export async function takeMethod(sql: Queryable, notice: MethodNotice): Promise<boolean> {
  const { event, id, customerId, brand, last4, expires, createdAt } = notice
  const [customer] = await sql<{ account_id: string }[]>`
    SELECT account_id FROM payment_customers WHERE id = ${customerId}`
  if (customer === undefined) return false
  const accountId = customer.account_id
  const removed = event === 'removed'
  await sql`
    INSERT INTO payment_methods AS m (id, account_id, brand, last4, expires, created_at, removed_at)
    VALUES (
      ${id}, ${accountId}, ${brand}, ${last4}, ${expires}, ${createdAt}, CASE WHEN ${removed}::boolean THEN now() END)
    ON CONFLICT (id) DO UPDATE SET removed_at = coalesce(m.removed_at, excluded.removed_at)`
  // What pays automatic top-ups is gone.
  if (removed)
    await sql`
      UPDATE automatic_topups AS a SET enabled = false, off_reason = 'method_removed'
      WHERE a.account_id = ${accountId} AND a.enabled
        AND NOT EXISTS (SELECT FROM payment_methods WHERE account_id = a.account_id AND removed_at IS NULL)`
  return true
}
