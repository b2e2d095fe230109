/** API keys. See docs/api-rules.md, "Keys" and "Names and forms". */
import { z } from 'zod'
import type { Account, WalletTotals } from './account.ts'
import type { Agent } from './agent.ts'
import type { BudgetPeriods } from './budget.ts'
import type { Grant } from './organization.ts'

export const KEY_PREFIX = 'sk-tollgate-'
export const KEY_LENGTH_CHARS = 76
/** Number of characters of a key that any output may show: the prefix and the first 8 of the secret. */
export const KEY_SHOWN_CHARS = 20
export const KEY_PATTERN = /^sk-tollgate-[0-9a-f]{64}$/

export const KEY_KINDS = ['console', 'employee', 'agent', 'compute'] as const
export const keyKind = z.enum(KEY_KINDS)
export type KeyKind = z.infer<typeof keyKind>

export interface ApiKey {
  /** `key_` + ULID. */
  readonly id: string
  readonly accountId: string
  readonly name: string
  readonly kind: KeyKind
  /** The first 20 characters, enough to distinguish two keys. */
  readonly prefix: string
  /** null: every model. Empty: none. */
  readonly allowedModels: readonly string[] | null
  readonly expiresAt: Date | null
  readonly enabled: boolean
  readonly revokedAt: Date | null
  readonly agentId: string | null
  /** The grant of an employee or agent key; null for other kinds. */
  readonly grant: Grant | null
  /** May read the logs of the whole account. */
  readonly accountLogs: boolean
  /** Calls the draft of its agent where there is one, published or not. */
  readonly opensDraft: boolean
  /** false for a key kept only as a hash: it cannot be revealed. */
  readonly revealable: boolean
  readonly createdAt: Date
}

/** The result of looking up a key: the key, its account and its wallet at the time of the read. */
export interface Credential {
  readonly key: ApiKey
  readonly account: Account
  readonly wallet: WalletTotals
  /** The agent of an agent key, in any state; null for other kinds. Its file is the draft where the key opens that. */
  readonly agent: Agent | null
  /** Those of the key, of the member who uses it, and of the account. */
  readonly budgets: readonly BudgetPeriods[]
}
