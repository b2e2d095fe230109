import type { WalletTotals } from '../../schemas/account.ts'

/** A wallet inside a JSON value of PostgreSQL: amounts as text, because JSON numbers lose digits. */
export interface WalletJson {
  account_id: string
  balance: string
  held: string
  used: string
  version: string
}

export const walletOfJson = (row: WalletJson): WalletTotals => ({
  accountId: row.account_id,
  balance: BigInt(row.balance),
  held: BigInt(row.held),
  used: BigInt(row.used),
  version: BigInt(row.version),
})

export interface WalletRow {
  account_id: string
  balance: bigint
  held: bigint
  used: bigint
  version: bigint
}

export const walletOfRow = (row: WalletRow): WalletTotals => ({
  accountId: row.account_id,
  balance: row.balance,
  held: row.held,
  used: row.used,
  version: row.version,
})
