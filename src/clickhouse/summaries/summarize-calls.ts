/** Sums over one account's calls in a window of time, by status, by day and by model. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { CallStatus } from '../../../schemas/call-log/row.ts'
import { readRows } from '../connection.ts'
import {
  type AccountWindow,
  type CallSums,
  SUMS,
  type SumsRow,
  selectSummedRows,
  toSums,
} from './summed-rows.ts'

/** In no particular order; what has no call is absent. */
export interface CallSummary {
  readonly byStatus: readonly (CallSums & { readonly status: CallStatus })[]
  /** UTC days: `2026-01-31`. */
  readonly byDay: readonly (CallSums & { readonly day: string })[]
  readonly byModel: readonly (CallSums & { readonly model: string })[]
}

interface Row extends SumsRow {
  /** Which of the three this row is a sum of. */
  readonly dimension: 'status' | 'day' | 'model'
  readonly value: string
}

/** Returns the summary: one round trip, all three sums in one pass. */
export async function summarizeCalls(
  client: ClickHouseClient,
  window: AccountWindow,
  signal: AbortSignal,
): Promise<CallSummary> {
  const rows = selectSummedRows({ ...window, columns: ['day', 'model', 'status'] })
  if (rows === null) return { byStatus: [], byDay: [], byModel: [] }
  const found = await readRows<Row>(client, {
    query: `
      SELECT multiIf(grouping(status) = 0, 'status', grouping(day) = 0, 'day', 'model') AS dimension,
             multiIf(dimension = 'status', toString(status), dimension = 'day', toString(day), toString(model)) AS value,
             ${SUMS}
      FROM (${rows.query})
      GROUP BY GROUPING SETS ((status), (day), (model))`,
    query_params: rows.parameters,
    // As in SQL elsewhere: 0 where the row is of one value of the column, 1 where it is of all.
    clickhouse_settings: { force_grouping_standard_compatibility: 1 },
    abort_signal: signal,
  })
  const sums = Map.groupBy(found, (row) => row.dimension)
  return {
    byStatus: (sums.get('status') ?? []).map((row) => ({ status: row.value as CallStatus, ...toSums(row) })),
    byDay: (sums.get('day') ?? []).map((row) => ({ day: row.value, ...toSums(row) })),
    byModel: (sums.get('model') ?? []).map((row) => ({ model: row.value, ...toSums(row) })),
  }
}
