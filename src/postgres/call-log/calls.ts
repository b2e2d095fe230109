/**
 * Usage rows as an operator reads them: the newest, and those that were booked since. Found only by their id, so
 * that a question never costs more than the rows it reads.
 */
import {
  BOOKED_COLUMNS,
  CALL_COLUMNS,
  type ColumnKind,
  type ColumnName,
  type FullRow,
  findColumn,
} from '../../../schemas/call-log/columns.ts'
import type { CallStatus } from '../../../schemas/call-log/row.ts'
import { type Credits, printCredits } from '../../../schemas/money.ts'
import { findSharedId } from '../../core/call-log/shared-ids.ts'
import type { Queryable, Sql } from '../connection.ts'

/** A row of the call log as an operator reads it, without its detail. */
export type OperatorCall = Omit<FullRow, 'detail'>

/** An absent field does not filter. */
export interface CallFilter {
  readonly accountId?: string | undefined
  readonly keyId?: string | undefined
  readonly models?: readonly string[] | undefined
  readonly statuses?: readonly CallStatus[] | undefined
}

export interface NewestCalls {
  /** In the order of their ids. */
  readonly calls: OperatorCall[]
  /** The newest row there is, whether it passed the filter or not; 0: there is none. */
  readonly upto: bigint
  /** Not all rows were read, and fewer were found than requested. */
  readonly isCut: boolean
}

export interface CallsSince {
  readonly calls: OperatorCall[]
  /** Position to continue at: everything up to this id was read. */
  readonly upto: bigint
  /** More rows wait behind `upto`. */
  readonly hasMore: boolean
}

/** Number of ids that are searched for the newest calls that pass a filter. */
export const LOOK_BACK_ROWS = 100_000
/** Number of ids that are searched at a time for new calls. */
export const SINCE_ROWS = 2_000

/** A row of `usage_rows` with the name of its key. */
export type CallRow = Readonly<Record<string, unknown>>

const LISTED = BOOKED_COLUMNS.filter((name) => name !== 'detail')
const SHOWN = (Object.keys(CALL_COLUMNS) as ColumnName[]).filter((name) => name !== 'detail')

const toIsoInstant = (epochMs: unknown): string => new Date(Number(epochMs)).toISOString()

/** Returns the value of a row from that of the table, by the kind of the column. */
const SHOW: Readonly<Record<ColumnKind, (value: unknown) => unknown>> = {
  text: (value) => value,
  count: Number,
  flag: (value) => value,
  instant: toIsoInstant,
  credits: (value) => printCredits(value as Credits),
  links: (value) => value,
  attempts: (value) => value,
}
/** Values of rows in place of null. A key may not be known. */
const ABSENT: { readonly [Name in ColumnName]?: unknown } = {
  key_name: '',
  key_prefix: '',
  result_urls: [],
  attempts: [],
}

/** Returns these columns of a row as the call log shows them. */
export function readColumns(row: CallRow, names: readonly ColumnName[]) {
  const shown = names.map((name) => {
    const value = row[name] ?? null
    return [name, value === null ? (ABSENT[name] ?? null) : SHOW[findColumn(name).kind](value)] as const
  })
  return { object: 'log' as const, ...Object.fromEntries(shown) }
}

const toCall = (row: CallRow): OperatorCall => readColumns(row, SHOWN) as OperatorCall

const selectFilter = (sql: Queryable, { accountId, keyId, models, statuses }: CallFilter) => sql`
  ${accountId === undefined ? sql`` : sql`AND account_id = ${accountId}`}
  ${keyId === undefined ? sql`` : sql`AND key_id = ${keyId}`}
  ${models === undefined ? sql`` : sql`AND model = ANY (${models as string[]}::text[])`}
  ${statuses === undefined ? sql`` : sql`AND status = ANY (${statuses as string[]}::text[])`}`

async function readCalls(sql: Queryable, which: ReturnType<Queryable>): Promise<OperatorCall[]> {
  const rows = await sql<CallRow[]>`
    SELECT u.*, k.name AS key_name, k.prefix AS key_prefix
    FROM (SELECT ${sql(LISTED)} FROM usage_rows ${which}) AS u LEFT JOIN api_keys AS k ON k.id = u.key_id
    ORDER BY u.id`
  return rows.map(toCall)
}

interface Span {
  /** Exclusive. */
  readonly after: bigint
  /** Counts. */
  readonly upto: bigint
}

async function readSpan(
  sql: Queryable,
  { after, upto }: Span,
  filter: CallFilter,
  newest: number | null,
): Promise<OperatorCall[]> {
  return readCalls(
    sql,
    sql`WHERE id > ${after} AND id <= ${upto} ${selectFilter(sql, filter)}
      ${newest === null ? sql`` : sql`ORDER BY id DESC LIMIT ${newest}`}`,
  )
}

/** Returns the newest id. When a row is visible, all rows with lower ids are: see `usage_rows`. */
async function readNewestId(sql: Queryable): Promise<bigint> {
  const [row] = await sql<{ id: bigint }[]>`SELECT id FROM usage_rows ORDER BY id DESC LIMIT 1`
  return row?.id ?? 0n
}

/** Returns the newest calls that pass the filter, from the last `LOOK_BACK_ROWS` rows. */
export async function listNewestCalls(sql: Sql, filter: CallFilter, count: number): Promise<NewestCalls> {
  const upto = await readNewestId(sql)
  // Ids follow the clock: how many rows are between two of them is counted.
  const [last] = await sql<{ id: bigint }[]>`
    SELECT id FROM usage_rows WHERE id <= ${upto} ORDER BY id DESC OFFSET ${LOOK_BACK_ROWS} LIMIT 1`
  const after = last?.id ?? 0n
  const calls = count === 0 ? [] : await readSpan(sql, { after, upto }, filter, count)
  return { calls, upto, isCut: after > 0n && calls.length < count }
}

/** Returns calls with a higher id, each exactly once to a reader that continues from `upto`. */
export async function listCallsSince(sql: Sql, filter: CallFilter, after: bigint): Promise<CallsSince> {
  const newest = await readNewestId(sql)
  const [last] = await sql<[{ id: bigint | null }]>`
    SELECT max(id) AS id FROM (
      SELECT id FROM usage_rows WHERE id > ${after} AND id <= ${newest} ORDER BY id LIMIT ${SINCE_ROWS}
    ) AS next`
  const upto = last.id ?? after
  const calls = upto > after ? await readSpan(sql, { after, upto }, filter, null) : []
  return { calls, upto, hasMore: newest > upto }
}

/** Returns the call with this request id, of this task, or with this numeric id. */
export async function findStoredCall(sql: Queryable, ref: string | bigint): Promise<OperatorCall | null> {
  const [call] = await readCalls(
    sql,
    typeof ref === 'bigint' ? sql`WHERE id = ${ref}` : sql`WHERE request_id = ${ref} OR task_id = ${ref}`,
  )
  if (call !== undefined) return call
  return typeof ref === 'bigint' ? null : findSharedCall(sql, ref)
}

/** A shared row is booked soon after its calls; one that waited longer for its booking is found in the call log. */
const SHARED_BOOKED_WITHIN_MS = 86_400_000
const CLOCK_SKEW_MS = 60_000

/** Returns the row that stands for the refused call with this request id, and for others. */
async function findSharedCall(sql: Queryable, requestId: string): Promise<OperatorCall | null> {
  const sharedId = findSharedId(requestId)
  if (sharedId === null) return null
  // Ids of rows follow the clock, in microseconds.
  const [call] = await readCalls(
    sql,
    sql`WHERE call_count > 1 AND id >= (id_ms(${requestId}) - ${CLOCK_SKEW_MS}) * 1000
      AND id < (id_ms(${requestId}) + ${SHARED_BOOKED_WITHIN_MS}) * 1000
      AND position(${sharedId} IN detail) > 0`,
  )
  return call ?? null
}
