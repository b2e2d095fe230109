/** A page of the call log: one account's calls in a window of time, in the order of their end. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { CallStatus, LogRow, UnitType } from '../../../schemas/call-log/row.ts'
import { PAGE_COLUMNS, type PageRow, pageRowOf, STORED_PAGE_COLUMN, toLogRow } from './call-row.ts'
import { isOfFailed } from './statement.ts'
import { readSteps } from './steps.ts'

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

export async function findCalls(
  client: ClickHouseClient,
  query: CallPageQuery,
  signal?: AbortSignal,
): Promise<CallPage> {
  const isStored = isOfFailed(query)
  const rows = await readSteps(query, async (statement) => {
    const answer = await client.query({
      ...statement(isStored ? STORED_PAGE_COLUMN : PAGE_COLUMNS),
      format: 'JSONEachRow',
      ...(signal && { abort_signal: signal }),
    })
    if (!isStored) return answer.json<PageRow>()
    return (await answer.json<{ page_row: string }>()).map(({ page_row }) => pageRowOf(page_row))
  })
  return { rows: rows.slice(0, query.limit).map(toLogRow), hasMore: rows.length > query.limit }
}
