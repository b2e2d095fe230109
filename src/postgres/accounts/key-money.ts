/** What a key may spend: in all, and for one call. */
import type { Credits } from '../../../schemas/money.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Queryable } from '../connection.ts'

export const notGrantable = (what: string): Refusal =>
  new Refusal('not_grantable', `${what} has no spend cap: only keys of kind employee and agent have`)

/** @throws Refusal `not_grantable`, `spend_cap_required` */
export async function setSpendCap(sql: Queryable, keyId: string, spendCap: Credits | null): Promise<void> {
  const [row] = await sql<[{ approved_by: string | null }?]>`
    SELECT approved_by FROM grants WHERE key_id = ${keyId} FOR UPDATE`
  if (row === undefined) throw notGrantable(`Key ${keyId}`)
  if (row.approved_by !== null && spendCap === null)
    throw new Refusal(
      'spend_cap_required',
      `Key ${keyId} was requested by a member: it must have a spend cap`,
    )
  await sql`UPDATE grants SET spend_cap = ${spendCap}, version = version + 1 WHERE key_id = ${keyId}`
}

/** Sets what one call of a key may cost at most; null: no limit. */
export async function setMaxPrice(
  sql: Queryable,
  { id, account_id: accountId }: { readonly id: string; readonly account_id: string },
  maxPrice: Credits | null,
): Promise<void> {
  await sql`
    INSERT INTO key_max_prices (key_id, account_id, max_price) VALUES (${id}, ${accountId}, ${maxPrice})
    ON CONFLICT (key_id) DO UPDATE SET max_price = excluded.max_price`
}
