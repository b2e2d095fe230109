/** Sums of one account's calls by UTC day and one more column. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { LogWindow } from '../../core/call-log/window.ts'
import { readRows } from '../connection.ts'
import { type CallSums, SUMS, type SumsRow, summedRows, sumsOf } from './summed-rows.ts'

export const DAILY_GROUPS = ['model', 'key_id', 'status'] as const
export type DailyGroup = (typeof DAILY_GROUPS)[number]

export interface DailyUsageQuery extends LogWindow {
  readonly accountId: string
  /** Null: of all keys. */
  readonly keyId: string | null
  readonly by: DailyGroup
}

export interface DailyUsage extends CallSums {
  /** `2026-01-31`. */
  readonly day: string
  /** The model, the id of the key, or the status. */
  readonly group: string
}

/** Returns the sums by day, then by group. */
export async function dailyUsage(
  client: ClickHouseClient,
  { by, ...window }: DailyUsageQuery,
  signal: AbortSignal,
): Promise<DailyUsage[]> {
  const rows = summedRows({ ...window, columns: ['day', by] })
  if (rows === null) return []
  const found = await readRows<SumsRow & { readonly day_text: string; readonly name: string }>(client, {
    query: `
      SELECT toString(day) AS day_text, toString(${by}) AS name, ${SUMS}
      FROM (${rows.query})
      GROUP BY day, ${by} ORDER BY day, ${by}`,
    query_params: rows.parameters,
    abort_signal: signal,
  })
  return found.map((row) => ({ day: row.day_text, group: row.name, ...sumsOf(row) }))
}
