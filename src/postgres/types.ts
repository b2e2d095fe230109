/** What the rest of the service may ask of PostgreSQL. */

import type { Account, AccountKind, LedgerEntry, WalletTotals } from '../../schemas/accounts/account.ts'
import type { ApiKey, Credential, KeyKind } from '../../schemas/accounts/key.ts'
import type { Settlement } from '../../schemas/events/event.ts'
import type { Credits } from '../../schemas/money.ts'
import type { Agents } from './accounts/agent-types.ts'
import type { Organizations } from './accounts/organization-types.ts'
import type { AuditedLog, AuditReport } from './billing/audit-report.ts'
import type { CallFilter, CallsSince, NewestCalls } from './call-log/calls.ts'
import type { ClaimedRange, CopyRange } from './call-log/copy.ts'
import type { FoundCall } from './call-log/find-call.ts'
import type { CopyMark } from './call-log/rebuild.ts'
import type { Wiki } from './knowledge/types.ts'
import type { MeteringReport } from './metering.ts'
import type { ClaimOutcome, IdempotencyClaim, StoredAnswer } from './requests/idempotency.ts'
import type { Tasks } from './tasks/types.ts'

export interface AccountWithWallet {
  readonly account: Account
  readonly wallet: WalletTotals
}

export interface NewAccount {
  readonly name: string
  /** Default: personal. */
  readonly kind?: AccountKind
  /** Trial credit; 0 leaves no ledger entry. */
  readonly credit: Credits
}

export interface TopUpOptions {
  readonly note?: string | null
  /** The same reference never counts twice in an account. */
  readonly reference?: string | null
}

export interface AdjustmentOptions {
  readonly reason: string
  /** As of a top-up. */
  readonly reference?: string | null
}

export interface Credited {
  readonly entry: LedgerEntry
  readonly wallet: WalletTotals
  /** The reference was booked before: `entry` is the one of then, and nothing was changed. */
  readonly isRepeated: boolean
}

/** What is left out stays as it is; null takes the limit away. */
export interface LimitChanges {
  readonly requestsPerMinute?: number | null
  readonly concurrency?: number | null
}

export interface NewKey {
  readonly accountId: string
  readonly name: string
  /** Default: console. */
  readonly kind?: KeyKind
  /** What an agent key is bound to: an agent of the same account that is not deleted. Other kinds have none. */
  readonly agentId?: string | null
  /** Default null: every model. */
  readonly allowedModels?: readonly string[] | null
  readonly expiresAt?: Date | null
  /** Of an employee or agent key. Default null: as far as the wallet goes. */
  readonly spendCap?: Credits | null
  /** Of a console key alone. */
  readonly accountLogs?: boolean
}

/** What is left out stays as it is. */
export interface KeyChanges {
  readonly name?: string
  readonly allowedModels?: readonly string[] | null
  readonly expiresAt?: Date | null
  readonly enabled?: boolean
  readonly accountLogs?: boolean
  readonly spendCap?: Credits | null
}

export interface Booking {
  /** The totals, after the booking, of every account and every capped key that was charged. */
  readonly wallets: WalletTotals[]
  /** Request ids booked by this call; the others had been booked before. */
  readonly booked: string[]
  /** Request ids that cannot be booked (an unknown account, a number out of range), kept with the reason. */
  readonly refused: string[]
}

export interface BookedState {
  /** Those of the request ids that need no booking any more: booked, or refused for good. */
  readonly requestIds: Set<string>
  readonly wallets: WalletTotals[]
}

export type ChangeKind = 'key' | 'account' | 'wallet' | 'agent'

export interface ChangeListener {
  /** `id` is the key's, the account's or the agent's. May come for a change that is known already. */
  onChange(kind: ChangeKind, id: string): void
  /** Changes may have been missed: whatever was read before must be read again. */
  onReset(): void
}

export interface Database extends Tasks, Organizations, Agents, Wiki {
  /** Throws when PostgreSQL does not answer. */
  ping(): Promise<void>
  close(): Promise<void>

  createAccount(account: NewAccount): Promise<AccountWithWallet>
  listAccounts(): Promise<AccountWithWallet[]>
  /** @throws Refusal `account_not_found`, as all that follow with an account's id */
  showAccount(accountId: string): Promise<AccountWithWallet>
  setAccountEnabled(accountId: string, enabled: boolean): Promise<AccountWithWallet>
  setAccountLimits(accountId: string, limits: LimitChanges): Promise<AccountWithWallet>

  /**
   * @throws Refusal `top_up_too_small` under 404.4 credits; `reference_conflict` where another amount or kind of entry
   * has the reference
   */
  topUp(accountId: string, amount: Credits, options?: TopUpOptions): Promise<Credited>
  /** Up or down; the balance may fall below zero. @throws Refusal `invalid_amount` for 0, `reference_conflict` */
  adjust(accountId: string, amount: Credits, options: AdjustmentOptions): Promise<Credited>
  /** The newest entries first. */
  listLedger(accountId: string, limit: number): Promise<LedgerEntry[]>
  /** Totals of those accounts that exist, and of those keys that have a cap. */
  readWallets(ids: readonly string[]): Promise<WalletTotals[]>

  /**
   * `raw` is the key itself: this is the only time it is at hand without `revealKey`.
   * @throws Refusal `agent_not_found`, `agent_deleted`, `not_grantable`, `account_logs_not_allowed`,
   * `wrong_master_key` where the master key was replaced meanwhile
   */
  createKey(key: NewKey): Promise<{ key: ApiKey; raw: string }>
  listKeys(accountId: string): Promise<ApiKey[]>
  /** Names by id, of those keys that exist; revoked ones too. */
  keyNames(keyIds: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** @throws Refusal `key_not_found`, as all that follow with a key's id */
  showKey(keyId: string): Promise<ApiKey>
  /**
   * @throws Refusal `key_not_revealable` for a key kept only as a hash, `wrong_master_key` where the master key was
   * replaced meanwhile
   */
  revealKey(keyId: string): Promise<{ key: ApiKey; raw: string }>
  /** For good; a second time changes nothing. */
  revokeKey(keyId: string): Promise<ApiKey>
  /** @throws Refusal `key_revoked`, `not_grantable`, `spend_cap_required`, `account_logs_not_allowed` */
  updateKey(keyId: string, changes: KeyChanges): Promise<ApiKey>

  /** Deletes the encrypted copies of all keys, for good. The keys go on working. Returns how many there were. */
  forgetKeys(): Promise<number>
  /**
   * Seals everything again with another master key, in one transaction: all of it or nothing. Returns how many keys
   * were sealed; null where this is the current master key already.
   * @throws Refusal `wrong_master_key` when this process does not have the current one, or `next` is a former one
   */
  rotateMasterKey(next: Buffer, options?: { readonly endLinks?: boolean }): Promise<number | null>
  /** When the master key of this process was replaced; null while it is the current one. */
  readonly masterKeyReplacedAt: Date | null
  /** Signs links to files. */
  readonly fileLinkKey: Buffer
  /** Signs cursors of the call log. */
  readonly logCursorKey: Buffer
  /** The keyed hash by which `findCredential` finds a raw key. */
  lookupHash(rawKey: string): Buffer
  findCredential(lookupHash: Buffer): Promise<Credential | null>

  /**
   * Books 1 to 1,000 ended calls in one transaction, each exactly once by its `request_id`, whatever
   * was delivered before or twice in this batch.
   * @throws what `isTransient` tells apart: transient errors are worth another try, nothing was booked
   */
  bookSettlements(settlements: readonly Settlement[]): Promise<Booking>
  /** What is booked and the wallets, both at the same instant. */
  readBooked(requestIds: readonly string[], walletIds: readonly string[]): Promise<BookedState>

  /**
   * The rows to copy next, or null: there are none, or another process copies. What was claimed and not
   * finished comes again as it was.
   */
  claimCopyRange(): Promise<ClaimedRange | null>
  /** Text as `USAGE_COLUMNS` says, in the order of the ids; each row with the newline that ends it. */
  readUsageRows(range: CopyRange): Promise<Buffer>
  /** The range is in the call log for good. */
  finishCopyRange(range: CopyRange): Promise<void>
  /** Rows with ids up to this one are in the call log for good. */
  copiedUpto(): Promise<bigint>
  /** Whether this process is the one that rebuilds the call log: it stays so until `close`, or until its session is lost. */
  claimRebuild(): Promise<boolean>
  /** Reads an index from end to end. */
  countUsageRows(): Promise<number>
  /** The id of the last of so many rows of a range; the end of the range where it has fewer. */
  rangeEnd(range: CopyRange, rows: number): Promise<bigint>
  /**
   * Nobody claims or finishes a range before `work` ends. `assertHeld` does not resolve where that is no longer so.
   * Rejects when the session is lost; `work` may have been done by then.
   */
  holdCopying<T>(work: (mark: CopyMark, assertHeld: () => Promise<void>) => Promise<T>): Promise<T>

  /** The newest calls that pass the filter; only so many rows are looked through as `LOOK_BACK_ROWS` says. */
  newestCalls(filter: CallFilter, count: number): Promise<NewestCalls>
  /** Calls with a higher id, each exactly once for a caller that continues from `upto`. */
  callsSince(filter: CallFilter, after: bigint): Promise<CallsSince>
  /** What is known of a request id, a task id or the numeric id of a row. */
  findCall(ref: string): Promise<FoundCall>

  /** Takes the key for this request, or returns what is stored under it. One of several concurrent requests gets it. */
  claimIdempotencyKey(claim: IdempotencyClaim): Promise<ClaimOutcome>
  /** Keeps the answer for 7 days; null: it was too large to keep. */
  storeIdempotentAnswer(claim: IdempotencyClaim, answer: StoredAnswer | null): Promise<void>
  /** The request came to nothing that could be replayed: the key may be used again. */
  freeIdempotencyKey(claim: IdempotencyClaim): Promise<void>
  /** Removes some of what has expired; answers how many. */
  purgeIdempotencyRecords(): Promise<number>

  /** Ends with the function that stops listening. Survives the loss of the connection. */
  listenChanges(listener: ChangeListener): Promise<() => Promise<void>>

  /** How calls that ended since then (epoch milliseconds) were metered, and which balances are negative. */
  meteringReport(since: number): Promise<MeteringReport>
  countNegativeBalances(): Promise<number>
  /** Keeps a line that is no settlement beside those that were refused; once, however often it comes. */
  keepMalformed(line: string, reason: string): Promise<void>
  /** Audits every wallet at one instant; with `log` the call log as well, unless it is away. */
  verifyWallets(log?: AuditedLog): Promise<AuditReport>
}
