/** Accounts and their wallets, as stored in PostgreSQL and sent between processes. */
import { z } from 'zod'
import type { Credits } from '../money.ts'

export const ACCOUNT_KINDS = ['personal', 'organization'] as const
export const accountKind = z.enum(ACCOUNT_KINDS)
export type AccountKind = z.infer<typeof accountKind>

export interface Account {
  /** `acc_` + ULID. */
  readonly id: string
  readonly name: string
  readonly kind: AccountKind
  readonly enabled: boolean
  /** Platform limits; null means the default of the configuration. */
  readonly requestsPerMinute: number | null
  readonly concurrency: number | null
  /** Models that any of its keys may call; null: every model. Empty: none. */
  readonly allowedModels: readonly string[] | null
  readonly createdAt: Date
}

/**
 * A wallet's totals. `balance` is the sum of all ledger entries, open holds already taken out; `held` is the sum of
 * the open holds; `used` is the sum of settled charges. Everything ever credited is `balance + held + used`. A capped
 * key has a wallet as well, under the key's id: its balance is the rest of the cap. `version` rises with every change,
 * so that an older message is recognised. `reserved` is the part of `balance` that calls have reserved over all
 * processes; absent when 0.
 */
export interface WalletTotals {
  readonly accountId: string
  readonly balance: Credits
  readonly held: Credits
  readonly used: Credits
  readonly version: bigint
  readonly reserved?: Credits
}

/** Ledger entry kinds. Amounts are signed: what lowers the balance is negative. */
export const LEDGER_KINDS = [
  'trial',
  'topup',
  'charge',
  'hold',
  'release',
  'refund',
  'adjustment',
  /** Credits of a card payment that was refunded or disputed; those that a won dispute gives back. */
  'reversal',
] as const
type LedgerKind = (typeof LEDGER_KINDS)[number]

export interface LedgerEntry {
  readonly id: bigint
  readonly accountId: string
  readonly kind: LedgerKind
  readonly amount: Credits
  /** The request or task that the entry belongs to; null for trial credit and top-ups, and adjustments but refunds. */
  readonly ref: string | null
  /** Of an adjustment, its reason. */
  readonly note: string | null
  /** The actor of a top-up, an adjustment or a reversal, as in the audit record; null for entries of calls and tasks. */
  readonly actor: string | null
  /** External reference of a top-up or an adjustment: no other entry of the account has it. */
  readonly reference: string | null
  readonly createdAt: Date
}

/** Of the name of an account, a key, a token or a user. */
export const MAX_NAME_CHARS = 100
/** Of the reason of a change of a balance, of its reference, and of the note of a request. */
export const MAX_NOTE_CHARS = 500
/** Of requests per minute and concurrency, of accounts and of keys: the largest integer of PostgreSQL. */
export const MAX_REQUEST_LIMIT = 2 ** 31 - 1

/** Credits of a new account unless configuration or command line set another amount. */
export const DEFAULT_TRIAL_CREDIT = '121.32'
/** The minimum top-up. See docs/api-rules.md, "Accounts and wallets". */
export const MINIMUM_TOP_UP = '404.4'
/**
 * Above this many credits the command line asks before it changes a balance, unless the configuration sets another
 * amount.
 */
export const DEFAULT_CONFIRM_ABOVE = '1000000'
