/** Booked calls that the call log in ClickHouse may not have yet, found by the same queries. */
import { BOOKED_COLUMNS, COPIED_COLUMNS, CUSTOMER_COLUMNS } from '../../../schemas/call-log/columns.ts'
import type { CallWithDetail } from '../../../schemas/call-log/detail.ts'
import type {
  InstallationCall,
  InstallationFilter,
  InstallationPageQuery,
} from '../../../schemas/call-log/page-query.ts'
import type { UnitType } from '../../../schemas/call-log/row.ts'
import { findSharedId } from '../../core/call-log/shared-ids.ts'
import type { Sql } from '../connection.ts'
import { type CallRow, readColumns } from './calls.ts'
import { readCopiedUpto } from './copy.ts'

/** The most rows that a query reads: a log that lags further behind shows its newest calls later. */
const MAX_UNCOPIED_ROWS = 10_000
/** The unit type by which callers find calls billed by tokens; their rows have none. */
const TOKEN_BILLED: UnitType = 'chat'

/** Selects the oldest rows booked after `copiedUpto`, and the names of their keys. */
const selectUncopied = (sql: Sql, copiedUpto: bigint, where: ReturnType<Sql>) => sql<CallRow[]>`
  SELECT u.*, k.name AS key_name, k.prefix AS key_prefix
  FROM (
    SELECT ${sql(BOOKED_COLUMNS)} FROM usage_rows
    WHERE id > ${copiedUpto} ORDER BY id LIMIT ${MAX_UNCOPIED_ROWS}
  ) AS u LEFT JOIN api_keys AS k ON k.id = u.key_id
  WHERE ${where}`

function selectRef(sql: Sql, ref: string | null) {
  if (ref === null) return sql``
  const sharedId = findSharedId(ref)
  return sql`AND (u.request_id = ${ref} OR u.task_id = ${ref} ${
    sharedId === null ? sql`` : sql`OR (u.call_count > 1 AND position(${sharedId} IN u.detail) > 0)`
  })`
}

const selectList = (sql: Sql, column: string, values: readonly string[] | null) =>
  values === null ? sql`` : sql`AND ${sql(column)} = ANY (${values as string[]}::text[])`

/** Leaves out rows with one of the values; keeps those without a value. */
const selectOthers = (sql: Sql, column: string, values: readonly string[] | null | undefined) =>
  values == null ? sql`` : sql`AND (${sql(column)} = ANY (${values as string[]}::text[])) IS NOT TRUE`

const selectAbove = (sql: Sql, column: string, bound: bigint | number | null | undefined) =>
  bound == null ? sql`` : sql`AND ${sql(column)} > ${bound}`

const selectPart = (sql: Sql, text: ReturnType<Sql>, part: string | null | undefined) =>
  part == null ? sql`` : sql`AND position(lower(${part}) IN lower(${text})) > 0`

const listOne = (value: string | null | undefined) => (value == null ? null : [value])

const selectFilter = (sql: Sql, filter: InstallationFilter) => sql`
  u.created_at >= ${filter.from} AND u.created_at < ${filter.to}
  ${selectRef(sql, filter.ref)}
  ${selectList(sql, 'u.key_id', filter.keyIds)}
  ${selectList(sql, 'u.account_id', listOne(filter.accountId))}
  ${selectList(sql, 'u.channel_id', listOne(filter.channelId))}
  ${selectList(sql, 'u.session_id', listOne(filter.sessionId))}
  ${selectList(sql, 'u.model', filter.models)}
  ${selectPart(sql, sql`u.model`, filter.modelPart)}
  ${selectPart(sql, sql`concat_ws(' ', k.name, k.prefix)`, filter.keyPart)}
  ${selectList(sql, 'u.status', filter.statuses)}
  ${selectList(sql, 'u.error_code', filter.errorCodes)}
  ${selectOthers(sql, 'u.model', filter.notModels)}
  ${selectOthers(sql, 'u.error_code', filter.notErrorCodes)}
  ${selectAbove(sql, 'u.cost', filter.costAbove)}
  ${selectAbove(sql, 'u.latency_ms', filter.latencyAboveMs)}
  ${
    filter.unitTypes === null
      ? sql``
      : sql`AND (u.unit_type = ANY (${filter.unitTypes as UnitType[]}::text[])
          ${filter.unitTypes.includes(TOKEN_BILLED) ? sql`OR u.unit_type IS NULL` : sql``})`
  }`

const LISTED = [...CUSTOMER_COLUMNS, 'account_id', 'channel_id'] as const

/** Returns the calls of the page that were booked after `copiedUpto`, in its order; one more than the page may have. */
export async function listUncopiedCalls(
  sql: Sql,
  query: InstallationPageQuery,
  copiedUpto: bigint,
): Promise<InstallationCall[]> {
  const isAscending = query.order === 'asc'
  const { after } = query
  const position =
    after === null
      ? sql``
      : isAscending
        ? sql`AND (u.created_at, u.id) > (${after.createdAt}, ${after.id})`
        : sql`AND (u.created_at, u.id) < (${after.createdAt}, ${after.id})`
  const rows = await selectUncopied(
    sql,
    copiedUpto,
    sql`${selectFilter(sql, query)} ${position}
      ORDER BY ${isAscending ? sql`u.created_at, u.id` : sql`u.created_at DESC, u.id DESC`}
      LIMIT ${query.limit + 1}`,
  )
  return rows.map((row) => readColumns(row, LISTED) as InstallationCall)
}

export interface CallsById {
  readonly accountId: string
  readonly ids: readonly number[]
}

/** Returns those of an account's calls with these ids that may be missing from the call log. */
export async function listUncopiedById(sql: Sql, { accountId, ids }: CallsById): Promise<CallWithDetail[]> {
  const rows = await selectUncopied(
    sql,
    await readCopiedUpto(sql),
    sql`u.account_id = ${accountId} AND u.id = ANY (${ids as number[]}::bigint[])`,
  )
  return rows.map((row) => readColumns(row, COPIED_COLUMNS) as CallWithDetail)
}
