/** Receipts and credit notes, numbered without gaps. */
import type { Receipt } from '../../../schemas/payments/payment.ts'
import { fromRow, type SnakeCase } from '../../core/json/snake-case.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Queryable } from '../connection.ts'

type ReceiptRow = SnakeCase<Receipt>

type NewReceipt = Omit<Receipt, 'number' | 'accountName' | 'issuedAt'>

/** Issues a receipt in the transaction that books the payment: when that fails, no number is used. */
export async function issueReceipt(sql: Queryable, wanted: NewReceipt): Promise<void> {
  const { kind, paymentId, reversalId, accountId, amount, currency, credits } = wanted
  await sql`
    WITH counted AS (UPDATE receipt_numbers SET last = last + 1 RETURNING last)
    INSERT INTO receipts (
      number, kind, payment_id, reversal_id, account_id, account_name, amount, currency, credits)
    SELECT counted.last, ${kind}, ${paymentId}, ${reversalId}, a.id, a.name, ${amount}, ${currency}, ${credits}
    FROM counted, accounts AS a WHERE a.id = ${accountId}`
}

/** Lists the receipts of these payments, the oldest first. */
export async function listReceipts(sql: Queryable, paymentIds: readonly string[]): Promise<Receipt[]> {
  const rows = await sql<ReceiptRow[]>`
    SELECT * FROM receipts WHERE payment_id = ANY (${paymentIds as string[]}::text[]) ORDER BY number`
  return rows.map(fromRow<Receipt>)
}

/** @throws Refusal `receipt_not_found` */
export async function showReceipt(sql: Queryable, number: bigint): Promise<Receipt> {
  const [row] = await sql<ReceiptRow[]>`SELECT * FROM receipts WHERE number = ${number}`
  if (row === undefined) throw new Refusal('receipt_not_found', `There is no receipt ${number}`)
  return fromRow<Receipt>(row)
}
