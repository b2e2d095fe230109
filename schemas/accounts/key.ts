/** API keys. See docs/api-rules.md, "Keys" and "Names and forms". */
import { z } from 'zod'
import type { Credits } from '../money.ts'
import type { Account, WalletTotals } from './account.ts'
import type { Agent } from './agent.ts'
import type { BudgetPeriods } from './budget.ts'
import type { Grant } from './organization.ts'

export const KEY_PREFIX = 'sk-tollgate-'
/** Number of characters of a key that any output may show: the prefix and the first 8 of the secret. */
export const KEY_SHOWN_CHARS = 20
export const KEY_PATTERN = /^sk-tollgate-[0-9a-f]{64}$/

export const KEY_KINDS = ['console', 'employee', 'agent', 'compute'] as const
export const keyKind = z.enum(KEY_KINDS)
export type KeyKind = z.infer<typeof keyKind>

/** The longest time for which a former secret works after the first use of its successor. */
export const MAX_GRACE_SECONDS = 7 * 24 * 3600
export const DEFAULT_GRACE_SECONDS = 24 * 3600

/** Limits of one key, besides those of its account; null is no limit. */
export interface KeyLimits {
  readonly requestsPerMinute: number | null
  readonly concurrency: number | null
}

/** The secret that a key had before it was rotated. */
export interface FormerSecret {
  /** Its first 20 characters. */
  readonly prefix: string
  readonly replacedAt: Date
  readonly graceSeconds: number
  /** First use of a later secret; null: none was used yet. */
  readonly successorUsedAt: Date | null
  /** Use of this secret after it was replaced, to the minute. */
  readonly lastUsedAt: Date | null
  /** From this instant on it is refused. */
  readonly endsAt: Date
}

/** A secret whose use is noted, because its key was rotated. */
export interface RotatedSecret {
  readonly hash: Uint8Array
  /** From this instant on a former secret is refused; null: it is the newest one, and its first use is awaited. */
  readonly endsAt: Date | null
}

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
  /** null: limited only by its account. */
  readonly limits: KeyLimits | null
  /** What one call may be estimated at, at most; null: no limit. */
  readonly maxPrice: Credits | null
  /** Addresses and networks in CIDR notation; null: it works from anywhere. */
  readonly allowedAddresses: readonly string[] | null
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
  /** Of a rotated key, the former secret that works longest, or worked; null for a key that was never rotated. */
  readonly formerSecret: FormerSecret | null
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
  /** The secret that was looked up, where its use is to be noted; else null. */
  readonly secret: RotatedSecret | null
}
