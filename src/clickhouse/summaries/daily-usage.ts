/** Sums of one account's calls by day and one more column. */
import type { ClickHouseClient } from '@clickhouse/client'
import { readRows } from '../connection.ts'
import {
  type AccountWindow,
  type CallSums,
  SUMS,
  type SumsRow,
  selectSummedRows,
  toSums,
} from './summed-rows.ts'

export type DailyGroup = 'model' | 'key_id' | 'status'

export interface DailyQuery extends AccountWindow {
  readonly by: DailyGroup
  /** In which days begin; default: UTC. */
  readonly timezone?: string
}

export interface DailyUsage extends CallSums {
  /** `2026-01-31`. */
  readonly day: string
  /** The model, the id of the key, or the status. */
  readonly group: string
}

/** Returns the sums by day, then by group. */
export async function sumUsageByDay(
  client: ClickHouseClient,
  { by, ...window }: DailyQuery,
  signal: AbortSignal,
): Promise<DailyUsage[]> {
  const rows = selectSummedRows({ ...window, columns: ['day', by] })
  if (rows === null) return []
  const found = await readRows<SumsRow & { readonly day_text: string; readonly name: string }>(client, {
    query: `
      SELECT toString(day) AS day_text, toString(${by}) AS name, ${SUMS}
      FROM (${rows.query})
      GROUP BY day, ${by} ORDER BY day, ${by}`,
    query_params: rows.parameters,
    abort_signal: signal,
  })
  return found.map((row) => ({ day: row.day_text, group: row.name, ...toSums(row) }))
}
