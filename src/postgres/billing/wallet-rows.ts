/** Wallets and ledger entries as PostgreSQL gives them. */
import type { LedgerEntry, WalletTotals } from '../../../schemas/accounts/account.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'

/** A wallet inside a JSON value of PostgreSQL: amounts as text, because JSON numbers lose digits. */
export interface WalletJson {
  account_id: string
  balance: string
  held: string
  used: string
  version: string
  reserved?: string | null
}

/** Returns the reservation; an empty object for 0. */
const toReserved = (amount: bigint) => (amount === 0n ? {} : { reserved: amount })

export const parseWallet = (row: WalletJson): WalletTotals => ({
  accountId: row.account_id,
  balance: BigInt(row.balance),
  held: BigInt(row.held),
  used: BigInt(row.used),
  version: BigInt(row.version),
  ...toReserved(BigInt(row.reserved ?? 0)),
})

export type WalletRow = SnakeCase<Omit<WalletTotals, 'reserved'>> & { readonly reserved?: bigint | null }

export const toWallet = (row: WalletRow): WalletTotals => ({
  accountId: row.account_id,
  balance: row.balance,
  held: row.held,
  used: row.used,
  version: row.version,
  ...toReserved(row.reserved ?? 0n),
})

export type EntryRow = SnakeCase<LedgerEntry>

export const toLedgerEntry = (row: EntryRow): LedgerEntry => ({
  id: row.id,
  accountId: row.account_id,
  kind: row.kind,
  amount: row.amount,
  ref: row.ref,
  note: row.note,
  actor: row.actor,
  reference: row.reference,
  createdAt: row.created_at,
})
