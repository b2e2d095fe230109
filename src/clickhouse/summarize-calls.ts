/**
 * Sums over one account's calls in a window of time. Whole UTC days come from the table of sums by day, so that a year
 * reads thousands of rows however many calls it had; what the window holds of the days at its two ends comes from the
 * calls themselves. Exact, whatever the window.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import type { CallStatus } from '../../schemas/log.ts'
import type { Credits } from '../../schemas/money.ts'
import { DAY_MS, type LogWindow } from '../core/log-window.ts'
import { toClickHouseInstant } from './instant.ts'
import { LIVE_NAMES, type RollupNames } from './log-names.ts'

export interface CallSummaryQuery extends LogWindow {
  readonly accountId: string
  /** Null: all keys of the account. */
  readonly keyId: string | null
}

export interface CallSums {
  /** Calls of every status, the refused ones too; attempts do not count. */
  readonly requests: number
  readonly cost: Credits
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedTokens: number
}

/** In no particular order; what has no call is absent. */
export interface CallSummary {
  readonly byStatus: readonly (CallSums & { readonly status: CallStatus })[]
  /** UTC days: `2026-01-31`. */
  readonly byDay: readonly (CallSums & { readonly day: string })[]
  readonly byModel: readonly (CallSums & { readonly model: string })[]
}

const isSome = ({ from, to }: LogWindow): boolean => from < to

/** The whole days of a window, and what of it lies before and behind them. */
function parted({ from, to }: LogWindow): { days: LogWindow | null; edges: LogWindow[] } {
  const days = { from: Math.ceil(from / DAY_MS) * DAY_MS, to: Math.floor(to / DAY_MS) * DAY_MS }
  if (!isSome(days)) return { days: null, edges: [{ from, to }].filter(isSome) }
  const edges = [
    { from, to: days.from },
    { from: days.to, to },
  ]
  return { days, edges: edges.filter(isSome) }
}

const TOKENS = 'input_tokens, output_tokens, cached_tokens'

const fromDays = (rollup: RollupNames, ofKey: string): string => `
  SELECT day, model, status, requests, cost, ${TOKENS} FROM ${rollup.table}
  WHERE account_id = {accountId:String} ${ofKey} AND day >= {firstDay:Date} AND day < {dayBehind:Date}`

const fromCalls = (ofKey: string, edges: readonly LogWindow[]): string => `
  SELECT toDate(created_at, 'UTC') AS day, model, status, toUInt64(1) AS requests, cost, ${TOKENS} FROM calls
  WHERE account_id = {accountId:String} ${ofKey} AND (${edges
    .map(
      (_, edge) =>
        `created_at >= {from${edge}:DateTime64(3, 'UTC')} AND created_at < {to${edge}:DateTime64(3, 'UTC')}`,
    )
    .join(' OR ')})`

const toClickHouseDay = (epochMs: number): string => toClickHouseInstant(epochMs).slice(0, 10)

function statementOf({ accountId, keyId, ...window }: CallSummaryQuery) {
  const { days, edges } = parted(window)
  const ofKey = keyId === null ? '' : 'AND key_id = {keyId:String}'
  const sources = [
    ...(days === null ? [] : [fromDays(keyId === null ? LIVE_NAMES.byModel : LIVE_NAMES.byDay, ofKey)]),
    ...(edges.length === 0 ? [] : [fromCalls(ofKey, edges)]),
  ]
  const ends = edges.flatMap(({ from, to }, edge) => [
    [`from${edge}`, toClickHouseInstant(from)],
    [`to${edge}`, toClickHouseInstant(to)],
  ])
  return {
    sources,
    parameters: {
      accountId,
      ...(keyId !== null && { keyId }),
      ...(days !== null && { firstDay: toClickHouseDay(days.from), dayBehind: toClickHouseDay(days.to) }),
      ...Object.fromEntries(ends),
    },
  }
}

/** 64-bit numbers come as strings. */
interface Row {
  /** Which of the three this row is a sum of. */
  readonly dimension: 'status' | 'day' | 'model'
  readonly value: string
  readonly calls: string
  /** Counts 1e-8 credit. */
  readonly cost_units: string
  readonly input: string
  readonly output: string
  readonly cached: string
}

const sumsOf = (row: Row): CallSums => ({
  requests: Number(row.calls),
  cost: BigInt(row.cost_units),
  inputTokens: Number(row.input),
  outputTokens: Number(row.output),
  cachedTokens: Number(row.cached),
})

/** One round trip, all three sums in one pass. */
export async function summarizeCalls(
  client: ClickHouseClient,
  query: CallSummaryQuery,
  signal?: AbortSignal,
): Promise<CallSummary> {
  const { sources, parameters } = statementOf(query)
  if (sources.length === 0) return { byStatus: [], byDay: [], byModel: [] }
  const answer = await client.query({
    query: `
      SELECT multiIf(grouping(status) = 0, 'status', grouping(day) = 0, 'day', 'model') AS dimension,
             multiIf(dimension = 'status', toString(status), dimension = 'day', toString(day), toString(model)) AS value,
             sum(requests) AS calls, toString(toInt128(sum(cost) * 100000000)) AS cost_units,
             sum(input_tokens) AS input, sum(output_tokens) AS output, sum(cached_tokens) AS cached
      FROM (${sources.join(' UNION ALL ')})
      GROUP BY GROUPING SETS ((status), (day), (model))`,
    query_params: parameters,
    format: 'JSONEachRow',
    // As in SQL elsewhere: 0 where the row is of one value of the column, 1 where it is of all.
    clickhouse_settings: { force_grouping_standard_compatibility: 1 },
    ...(signal && { abort_signal: signal }),
  })
  const sums = Map.groupBy(await answer.json<Row>(), (row) => row.dimension)
  return {
    byStatus: (sums.get('status') ?? []).map((row) => ({ status: row.value as CallStatus, ...sumsOf(row) })),
    byDay: (sums.get('day') ?? []).map((row) => ({ day: row.value, ...sumsOf(row) })),
    byModel: (sums.get('model') ?? []).map((row) => ({ model: row.value, ...sumsOf(row) })),
  }
}
