/** Where the rows of a page stand, and nothing else of them: so a page far too long to be held is known beforehand. */
import type { ClickHouseClient } from '@clickhouse/client'
import { type CallPageQuery, type CallPosition, pageStatement } from './find-calls.ts'

export interface CallPositions {
  readonly positions: readonly CallPosition[]
  readonly hasMore: boolean
}

const COLUMNS = 'toUnixTimestamp64Milli(created_at) AS created_ms, id'

/** 64-bit numbers come as strings. */
type Row = readonly [createdMs: string, id: string]

/** In the order of the page. */
export async function listPositions(
  client: ClickHouseClient,
  query: CallPageQuery,
  signal?: AbortSignal,
): Promise<CallPositions> {
  const answer = await client.query({
    ...pageStatement(COLUMNS, query, query.limit + 1),
    format: 'JSONCompactEachRow',
    ...(signal && { abort_signal: signal }),
  })
  const rows = await answer.json<Row>()
  const positions = rows.slice(0, query.limit).map(([ms, id]) => ({ createdAt: Number(ms), id: Number(id) }))
  return { positions, hasMore: rows.length > query.limit }
}
