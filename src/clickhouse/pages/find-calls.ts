/** A page of the call log: one account's calls in a window of time, in the order of their end. */

import type { ClickHouseClient } from '@clickhouse/client'
import type { LogRow } from '../../../schemas/call-log/columns.ts'
import type { CallPageQuery } from '../../../schemas/call-log/page-query.ts'
import { readRows } from '../connection.ts'
import { PAGE_COLUMNS, type PageRow, parsePageRow, STORED_PAGE_COLUMN, toLogRow } from './call-row.ts'
import { isOfFailed } from './statement.ts'
import { readSteps } from './steps.ts'

export interface CallPage {
  readonly rows: LogRow[]
  readonly hasMore: boolean
}

export async function findCalls(
  client: ClickHouseClient,
  query: CallPageQuery,
  signal: AbortSignal,
): Promise<CallPage> {
  const isStored = isOfFailed(query)
  const rows = await readSteps(query, async (statement) => {
    const bound = { abort_signal: signal }
    if (!isStored) return readRows<PageRow>(client, { ...statement(PAGE_COLUMNS), ...bound })
    const stored = await readRows<{ page_row: string }>(client, {
      ...statement(STORED_PAGE_COLUMN),
      ...bound,
    })
    return stored.map(({ page_row }) => parsePageRow(page_row))
  })
  return { rows: rows.slice(0, query.limit).map(toLogRow), hasMore: rows.length > query.limit }
}
