/** The calls of the log, read in the order on disk, and in full: to compare them with the usage rows one by one. */

import type { ClickHouseClient } from '@clickhouse/client'
import {
  type ColumnKind,
  SETTLED_COLUMNS,
  type Settlement,
  settlement,
} from '../../../schemas/call-log/columns.ts'
import type { LoggedCall, LogPosition } from '../../../schemas/call-log/unbooked.ts'
import { parseCredits } from '../../../schemas/money.ts'
import { readRows } from '../connection.ts'
import { convertValues, FULL_COLUMNS, type PageRow } from '../pages/call-row.ts'

const ORDER = 'account_id, created_at, id'
const UNITS_OF_COST = 'toString(toInt128(cost * 100000000))'

export interface CallsQuery {
  /** Epoch milliseconds. Calls admitted before are not compared. */
  readonly admittedSince: number
  /** Null: from the first one on. */
  readonly after: LogPosition | null
  readonly limit: number
}

/** Returns the next calls in the order of the log. */
export async function listLoggedCalls(
  client: ClickHouseClient,
  { admittedSince, after, limit }: CallsQuery,
): Promise<LoggedCall[]> {
  const rows = await readRows<Record<string, string>>(client, {
    query: `
      SELECT account_id AS account, toString(toUnixTimestamp64Milli(created_at)) AS at, toString(id) AS call_id,
        request_id, toString(toUnixTimestamp64Milli(submitted_at)) AS submitted, ${UNITS_OF_COST} AS cost_units
      FROM calls
      WHERE submitted_at >= fromUnixTimestamp64Milli({admittedSince:Int64}, 'UTC')
        AND (account_id > {account:String} OR account_id = {account:String} AND (
          created_at > fromUnixTimestamp64Milli({at:Int64}, 'UTC')
          OR created_at = fromUnixTimestamp64Milli({at:Int64}, 'UTC') AND calls.id > {id:UInt64}))
      ORDER BY ${ORDER} LIMIT {limit:UInt32}`,
    query_params: {
      admittedSince,
      account: after?.accountId ?? '',
      at: after?.createdAt ?? 0,
      id: after?.id.toString() ?? '0',
      limit,
    },
  })
  return rows.map((row) => ({
    accountId: row.account!,
    createdAt: Number(row.at),
    id: BigInt(row.call_id!),
    requestId: row.request_id!,
    submittedAt: Number(row.submitted),
    cost: BigInt(row.cost_units!),
  }))
}

/** Returns the value of a settlement from the one that was read. */
const SETTLE: Readonly<Record<ColumnKind, (value: unknown) => unknown>> = {
  text: (value) => value,
  count: Number,
  flag: (value) => value,
  instant: Number,
  credits: (value) => String(parseCredits(value as string)),
  links: (value) => value,
  attempts: (value) => (value === '' ? [] : JSON.parse(value as string)),
}

/** Returns calls as they were settled. */
export async function readLoggedSettlements(
  client: ClickHouseClient,
  calls: readonly LoggedCall[],
): Promise<Settlement[]> {
  if (calls.length === 0) return []
  const instants = calls.map(({ createdAt }) => createdAt)
  const rows = await readRows<PageRow>(client, {
    query: `
      SELECT ${FULL_COLUMNS}
      FROM calls
      WHERE account_id IN {accounts:Array(String)} AND request_id IN {requests:Array(String)}
        AND created_at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')
        AND created_at <= fromUnixTimestamp64Milli({to:Int64}, 'UTC')
      LIMIT 1 BY request_id`,
    query_params: {
      accounts: [...new Set(calls.map(({ accountId }) => accountId))],
      requests: calls.map(({ requestId }) => requestId),
      from: Math.min(...instants),
      to: Math.max(...instants),
    },
  })
  return rows.map((row) => settlement.parse(Object.fromEntries(convertValues(row, SETTLED_COLUMNS, SETTLE))))
}
