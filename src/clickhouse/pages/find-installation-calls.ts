/** A page of the calls of all accounts, for operators. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { InstallationCall, InstallationPageQuery } from '../../../schemas/call-log/page-query.ts'
import { readRows } from '../connection.ts'
import { PAGE_COLUMNS, type PageRow, toLogRow } from './call-row.ts'
import { readSteps } from './steps.ts'

export interface InstallationCallPage {
  readonly rows: InstallationCall[]
  readonly hasMore: boolean
}

type Row = PageRow & { readonly account_id: string; readonly channel_id: string }

export async function findInstallationCalls(
  client: ClickHouseClient,
  query: InstallationPageQuery,
  signal: AbortSignal,
): Promise<InstallationCallPage> {
  const rows = await readSteps(query, (statement) =>
    readRows<Row>(client, { ...statement(`${PAGE_COLUMNS}, account_id, channel_id`), abort_signal: signal }),
  )
  return {
    rows: rows.slice(0, query.limit).map((row) => ({
      ...toLogRow(row),
      account_id: row.account_id,
      channel_id: row.channel_id || null,
    })),
    hasMore: rows.length > query.limit,
  }
}
