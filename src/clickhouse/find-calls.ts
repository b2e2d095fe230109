/** A page of the call log: one account's calls in a window of time, in the order of their end. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { CallStatus, LogRow, UnitType } from '../../schemas/log.ts'
import { PAGE_COLUMNS, type PageRow, toLogRow } from './call-row.ts'
import { toClickHouseInstant } from './instant.ts'

/** Where in the order a page ended. */
export interface CallPosition {
  /** Epoch milliseconds. */
  readonly createdAt: number
  readonly id: number
}

/** What is null does not narrow. */
export interface CallFilter {
  readonly accountId: string
  readonly keyId: string | null
  readonly models: readonly string[] | null
  readonly statuses: readonly CallStatus[] | null
  /** `chat` stands for calls billed by tokens. */
  readonly unitTypes: readonly UnitType[] | null
  readonly errorCodes: readonly string[] | null
  /** A request id or a task id. */
  readonly ref: string | null
  /** Epoch milliseconds, the first instant that counts. */
  readonly from: number
  /** Epoch milliseconds, the first instant that counts no more. */
  readonly to: number
}

export interface CallPageQuery extends CallFilter {
  readonly order: 'asc' | 'desc'
  readonly limit: number
  /** The page begins behind this position; null: at the beginning. */
  readonly after: CallPosition | null
}

export interface CallPage {
  readonly rows: LogRow[]
  readonly hasMore: boolean
}

/** The unit type under which callers find what is billed by tokens; its rows have none. */
const TOKEN_BILLED: UnitType = 'chat'

function conditionsOf(filter: CallFilter) {
  const conditions = [
    'account_id = {accountId:String}',
    `created_at >= {from:DateTime64(3, 'UTC')}`,
    `created_at < {to:DateTime64(3, 'UTC')}`,
  ]
  const parameters: Record<string, unknown> = {
    accountId: filter.accountId,
    from: toClickHouseInstant(filter.from),
    to: toClickHouseInstant(filter.to),
  }
  const narrow = (condition: string, name: string, value: unknown) => {
    if (value === null) return
    conditions.push(condition)
    parameters[name] = value
  }
  const unitTypes = filter.unitTypes?.includes(TOKEN_BILLED) ? [...filter.unitTypes, ''] : filter.unitTypes
  narrow('key_id = {keyId:String}', 'keyId', filter.keyId)
  narrow('model IN {models:Array(String)}', 'models', filter.models)
  narrow('status IN {statuses:Array(String)}', 'statuses', filter.statuses)
  narrow('unit_type IN {unitTypes:Array(String)}', 'unitTypes', unitTypes)
  narrow('error_code IN {errorCodes:Array(String)}', 'errorCodes', filter.errorCodes)
  narrow('(request_id = {ref:String} OR task_id = {ref:String})', 'ref', filter.ref)
  return { conditions, parameters }
}

/** Rows strictly behind `after` in the order of the page; the first bound is the one the table's order can use. */
function positionOf(order: 'asc' | 'desc', after: CallPosition) {
  const behind = order === 'asc' ? '>' : '<'
  const at = `{afterAt:DateTime64(3, 'UTC')}`
  return {
    conditions: [
      `created_at ${behind}= ${at}`,
      `(created_at ${behind} ${at} OR id ${behind} {afterId:UInt64})`,
    ],
    parameters: { afterAt: toClickHouseInstant(after.createdAt), afterId: after.id },
  }
}

/**
 * Columns of so many rows, from the beginning of the page on. Equal instants are told apart by id, so that a walk over
 * pages gives every row once.
 */
export function pageStatement(columns: string, query: CallPageQuery, rows: number) {
  const filter = conditionsOf(query)
  const position = query.after && positionOf(query.order, query.after)
  const direction = query.order === 'asc' ? 'ASC' : 'DESC'
  return {
    query: `
      SELECT ${columns} FROM calls
      WHERE ${[...filter.conditions, ...(position?.conditions ?? [])].join(' AND ')}
      ORDER BY created_at ${direction}, id ${direction}
      LIMIT {rows:UInt32}`,
    query_params: { ...filter.parameters, ...position?.parameters, rows },
  }
}

export async function findCalls(
  client: ClickHouseClient,
  query: CallPageQuery,
  signal?: AbortSignal,
): Promise<CallPage> {
  const answer = await client.query({
    ...pageStatement(PAGE_COLUMNS, query, query.limit + 1),
    format: 'JSONEachRow',
    ...(signal && { abort_signal: signal }),
  })
  const rows = await answer.json<PageRow>()
  return { rows: rows.slice(0, query.limit).map(toLogRow), hasMore: rows.length > query.limit }
}
