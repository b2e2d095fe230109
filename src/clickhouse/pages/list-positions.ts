/**
 * Reads a page that is too long for memory: first the positions of all its rows, then the rows themselves, some at a
 * time. Rows booked meanwhile are not in it.
 */

import type { ClickHouseClient } from '@clickhouse/client'
import type { LogRow } from '../../../schemas/call-log/columns.ts'
import type { CallPageQuery, CallPosition } from '../../../schemas/call-log/page-query.ts'
import { readRows } from '../connection.ts'
import { toClickHouseInstant } from '../instant.ts'
import { PAGE_COLUMNS, type PageRow, toLogRow } from './call-row.ts'
import { readSteps } from './steps.ts'

export interface CallPositions {
  readonly positions: readonly CallPosition[]
  readonly hasMore: boolean
}

const POSITION_COLUMNS = 'toUnixTimestamp64Milli(created_at) AS created_ms, id'

/** 64-bit numbers come as strings. */
type PositionRow = readonly [createdMs: string, id: string]

/** Returns the positions in the order of the page. */
export async function listPositions(
  client: ClickHouseClient,
  query: CallPageQuery,
  signal: AbortSignal,
): Promise<CallPositions> {
  const rows = await readSteps(query, async (statement) => {
    const answer = await client.query({
      ...statement(POSITION_COLUMNS),
      format: 'JSONCompactEachRow',
      abort_signal: signal,
    })
    return answer.json<PositionRow>()
  })
  const positions = rows.slice(0, query.limit).map(([ms, id]) => ({ createdAt: Number(ms), id: Number(id) }))
  return { positions, hasMore: rows.length > query.limit }
}

export interface CallsAtQuery {
  readonly accountId: string
  /** At least one, at most 500: parameters travel in the address of the request, which is bounded. */
  readonly positions: readonly CallPosition[]
}

/** Returns the rows at these positions, in their order, without those dropped by age meanwhile. */
export async function findCallsAt(
  client: ClickHouseClient,
  { accountId, positions }: CallsAtQuery,
  signal: AbortSignal,
): Promise<LogRow[]> {
  const instants = positions.map(({ createdAt }) => createdAt)
  const found = await readRows<PageRow>(client, {
    // The instants lead to where on disk the ids are.
    query: `
      SELECT ${PAGE_COLUMNS} FROM calls
      WHERE account_id = {accountId:String} AND id IN {ids:Array(UInt64)}
        AND created_at >= {first:DateTime64(3, 'UTC')} AND created_at <= {last:DateTime64(3, 'UTC')}`,
    query_params: {
      accountId,
      ids: positions.map(({ id }) => id),
      first: toClickHouseInstant(Math.min(...instants)),
      last: toClickHouseInstant(Math.max(...instants)),
    },
    abort_signal: signal,
  })
  const rows = new Map(found.map(toLogRow).map((row) => [row.id, row]))
  return positions.flatMap(({ id }) => rows.get(id) ?? [])
}
