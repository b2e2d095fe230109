/** Queries of the call log: which calls of an account, and which page of them. */
import type { Credits } from '../money.ts'
import type { LogRow } from './columns.ts'
import type { CallStatus, UnitType } from './row.ts'

/** Position at which a page ended. */
export interface CallPosition {
  /** Epoch milliseconds. */
  readonly createdAt: number
  readonly id: number
}

/** Whose calls. Null: all. */
export interface CallScope {
  readonly accountId: string | null
  readonly keyIds: readonly string[] | null
  readonly channelId?: string | null
}

/** Calls of all accounts, or of one. Null fields do not filter. */
export interface InstallationFilter extends CallScope {
  readonly models: readonly string[] | null
  readonly statuses: readonly CallStatus[] | null
  /** `chat` means calls billed by tokens. */
  readonly unitTypes: readonly UnitType[] | null
  readonly errorCodes: readonly string[] | null
  /** A request id or a task id. */
  readonly ref: string | null
  /** The session that the client named. */
  readonly sessionId: string | null
  /** Part of the model's id, in any case. */
  readonly modelPart?: string | null
  /** Part of the key's name or prefix, in any case. */
  readonly keyPart?: string | null
  readonly notModels?: readonly string[] | null
  readonly notErrorCodes?: readonly string[] | null
  /** Exclusive. */
  readonly costAbove?: Credits | null
  /** Exclusive. */
  readonly latencyAboveMs?: number | null
  /** `ref` is sought among the calls for which one row stands. */
  readonly isShared?: boolean
  /** Epoch milliseconds, the first instant that counts. */
  readonly from: number
  /** Epoch milliseconds, exclusive. */
  readonly to: number
}

/** Calls of one account. */
export interface CallFilter extends InstallationFilter {
  readonly accountId: string
}

/** Suggestions of values for one filter. */
export const CALL_VALUES_PER_FIELD = 50

interface Page {
  readonly order: 'asc' | 'desc'
  readonly limit: number
  /** The page begins behind this position; null: at the beginning. */
  readonly after: CallPosition | null
}

export interface CallPageQuery extends CallFilter, Page {}
export interface InstallationPageQuery extends InstallationFilter, Page {}

/** A call as operators list it. */
export interface InstallationCall extends LogRow {
  readonly account_id: string
  /** Null: no channel was called. */
  readonly channel_id: string | null
}
