/** The audit record: the entries that triggers write, and those for operations without a row. */
import type { LedgerEntry } from '../../../schemas/accounts/account.ts'
import { type Credits, printCredits } from '../../../schemas/money.ts'
import { fromRow, type SnakeCase } from '../../core/json/snake-case.ts'
import type { Queryable, Sql } from '../connection.ts'
import { jsonValue } from '../json.ts'
import { inRange, type TimeRange } from '../time-range.ts'

/** One administrative operation. `before` and `after` contain no secrets. */
export interface AuditEntry {
  readonly id: bigint
  readonly at: Date
  /** `operator:<user>` for the command line, else the acting account's id. */
  readonly actor: string
  /** `<subject>.<verb>`, such as `key.revoke`. */
  readonly action: string
  readonly accountId: string | null
  readonly subjectId: string
  readonly before: unknown
  readonly after: unknown
}

export interface AuditFilter extends TimeRange {
  readonly accountId?: string
  readonly subjectId?: string
  /** The action, or its beginning. */
  readonly action?: string
  /** The id before which the list begins. */
  readonly before?: bigint
  readonly limit: number
}

type AuditRow = SnakeCase<AuditEntry>

/** Sets the actor of this transaction's entries. */
export const setActor = (sql: Queryable, actor: string) =>
  sql`SELECT set_config('tollgate.actor', ${actor}, true)`

/** Sets the actor to the account in whose name someone acts; a user or a token that is known stays. */
export const setActorToAccount = (sql: Queryable, accountId: string) =>
  sql`
    SELECT set_config('tollgate.actor', ${accountId}, true)
    WHERE coalesce(current_setting('tollgate.actor', true), '') !~ '^(user|token):'`

const toJsonOrNull = (sql: Queryable, value: unknown) => (value === null ? sql`NULL` : jsonValue(sql, value))

/** An operation that changes no field that the record shows has neither `before` nor `after`. */
export type AuditedOperation = Pick<AuditEntry, 'action' | 'accountId' | 'subjectId'> &
  Partial<Pick<AuditEntry, 'before' | 'after'>>

/** Records an operation that no audited table shows, as part of its transaction. It must contain no secret. */
export async function recordOperation(sql: Queryable, operation: AuditedOperation): Promise<void> {
  const { action, accountId, subjectId, before = null, after = null } = operation
  await sql`
    INSERT INTO audit_entries (actor, action, account_id, subject_id, before, after)
    VALUES (
      audit_actor(), ${action}, ${accountId}, ${subjectId}, ${toJsonOrNull(sql, before)}, ${toJsonOrNull(sql, after)})`
}

/** Records credits added to or removed from an account, as part of their transaction. */
export const recordCredit = (sql: Queryable, entry: LedgerEntry, balanceBefore: Credits): Promise<void> =>
  recordOperation(sql, {
    action: `wallet.${entry.kind}`,
    accountId: entry.accountId,
    subjectId: entry.accountId,
    before: { balance: printCredits(balanceBefore) },
    after: {
      balance: printCredits(balanceBefore + entry.amount),
      amount: printCredits(entry.amount),
      note: entry.note,
      reference: entry.reference,
      entry: Number(entry.id),
    },
  })

/** Lists entries, the newest first. */
export async function listAudit(sql: Sql, filter: AuditFilter): Promise<AuditEntry[]> {
  const { accountId, subjectId, action, before, limit } = filter
  const rows = await sql<AuditRow[]>`
    SELECT * FROM audit_entries
    WHERE true
      ${accountId === undefined ? sql`` : sql`AND account_id = ${accountId}`}
      ${subjectId === undefined ? sql`` : sql`AND subject_id = ${subjectId}`}
      ${action === undefined ? sql`` : sql`AND starts_with(action, ${action})`}
      ${before === undefined ? sql`` : sql`AND id < ${before}`}
      ${inRange(sql, 'at', filter)}
    ORDER BY id DESC LIMIT ${limit}`
  return rows.map(fromRow<AuditEntry>)
}
