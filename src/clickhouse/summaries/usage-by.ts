/** Sums the calls of one account or of all in a window of time, by one column. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { UsageGroup } from '../../../schemas/management/calls/usage.ts'
import type { LogWindow } from '../../core/call-log/window.ts'
import { type CallSums, SUMS, type SumColumn, type SumsRow, summedRows, sumsOf } from './summed-rows.ts'

export interface UsageByQuery extends LogWindow {
  /** Null: all accounts. */
  readonly accountId: string | null
  readonly by: UsageGroup
}

/** Columns that are not grouped by are null; a key comes with its account. Days are UTC: `2026-01-31`. */
export interface UsageSums extends CallSums {
  readonly accountId: string | null
  readonly keyId: string | null
  readonly model: string | null
  readonly day: string | null
}

const COLUMNS: Readonly<Record<UsageGroup, readonly SumColumn[]>> = {
  account: ['account_id'],
  model: ['model'],
  day: ['day'],
  key: ['account_id', 'key_id'],
}

type Row = SumsRow & { readonly [Column in SumColumn]?: string }

/** Days in their order; all else by cost, the dearest first, then by name. */
export async function usageBy(
  client: ClickHouseClient,
  { by, ...window }: UsageByQuery,
  signal?: AbortSignal,
): Promise<UsageSums[]> {
  const columns = COLUMNS[by]
  const rows = summedRows({ ...window, keyId: null, columns })
  if (rows === null) return []
  const answer = await client.query({
    query: `
      SELECT ${columns.map((column) => `toString(${column}) AS ${column}`).join(', ')}, ${SUMS}
      FROM (${rows.query})
      GROUP BY ${columns.join(', ')}
      ORDER BY ${by === 'day' ? 'day' : `sum(cost) DESC, ${columns.join(', ')}`}`,
    query_params: rows.parameters,
    format: 'JSONEachRow',
    ...(signal && { abort_signal: signal }),
  })
  return (await answer.json<Row>()).map((row) => ({
    accountId: row.account_id ?? null,
    keyId: row.key_id ?? null,
    model: row.model ?? null,
    day: row.day ?? null,
    ...sumsOf(row),
  }))
}
