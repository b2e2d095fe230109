/**
 * Returns the calls of a window of time as rows to sum up, by the requested columns. Whole UTC days come from a table
 * of sums by day, so that a year reads thousands of rows however many calls it had; the parts of days at the window's
 * two ends come from the calls themselves, as do all days of another time zone. Exact for any window.
 */
import type { Credits } from '../../../schemas/money.ts'
import { DAY_MS, type LogWindow } from '../../core/call-log/window.ts'
import { toClickHouseInstant } from '../instant.ts'
import { LIVE_NAMES } from '../tables/names.ts'

export interface CallSums {
  /** Calls of every status, the refused ones too; attempts do not count. */
  readonly requests: number
  readonly cost: Credits
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedTokens: number
}

/** A window of time of one account, or of some of its keys. */
export interface AccountWindow extends LogWindow {
  readonly accountId: string
  /** Null: all keys of the account. */
  readonly keyIds: readonly string[] | null
}

export type SumColumn = 'account_id' | 'key_id' | 'day' | 'model' | 'status' | 'channel_id'

interface SummedCalls extends LogWindow {
  /** Null: all accounts. */
  readonly accountId: string | null
  /** Null: all keys. */
  readonly keyIds: readonly string[] | null
  /** The columns that distinguish the rows. */
  readonly columns: readonly SumColumn[]
  /** In which days begin; default: UTC. */
  readonly timezone?: string
  /** Only the calls with a known upstream cost, with that cost. Only these have a channel, and no status. */
  readonly ofCosts?: boolean
}

const isSome = ({ from, to }: LogWindow): boolean => from < to

/** Returns the whole days of a window, and the parts before and after them. */
function splitWindow({ from, to }: LogWindow): { days: LogWindow | null; edges: LogWindow[] } {
  const days = { from: Math.ceil(from / DAY_MS) * DAY_MS, to: Math.floor(to / DAY_MS) * DAY_MS }
  if (!isSome(days)) return { days: null, edges: [{ from, to }].filter(isSome) }
  const edges = [
    { from, to: days.from },
    { from: days.to, to },
  ]
  return { days, edges: edges.filter(isSome) }
}

const UTC = 'UTC'
const UPSTREAM_COST = 'upstream_cost'
const TOKENS = 'input_tokens, output_tokens, cached_tokens'

const selectFromDays = (table: string, columns: readonly string[], which: string): string => `
  SELECT ${columns.join(', ')}, requests, cost, ${TOKENS} FROM ${table}
  WHERE ${which} AND day >= {firstDay:Date} AND day < {dayBehind:Date}`

const selectColumn = (column: string): string =>
  column === 'day' ? 'toDate(created_at, {timezone:String}) AS day' : column

const selectFromCalls = (edges: readonly LogWindow[], columns: readonly string[], which: string): string => `
  SELECT ${columns.map(selectColumn).join(', ')}, toUInt64(call_count) AS requests, cost, ${TOKENS} FROM calls
  WHERE ${which} AND (${edges
    .map(
      (_, edge) =>
        `created_at >= {from${edge}:DateTime64(3, 'UTC')} AND created_at < {to${edge}:DateTime64(3, 'UTC')}`,
    )
    .join(' OR ')})`

const toClickHouseDay = (epochMs: number): string => toClickHouseInstant(epochMs).slice(0, 10)

/** Returns a query that yields the rows, with its parameters; null for an empty window. */
export function selectSummedRows({
  accountId,
  keyIds,
  columns: groups,
  ofCosts = false,
  timezone = UTC,
  ...window
}: SummedCalls) {
  const isByOtherDays = groups.includes('day') && timezone !== UTC
  const { days, edges } = isByOtherDays ? { days: null, edges: [window].filter(isSome) } : splitWindow(window)
  const which = [
    accountId === null ? 'true' : 'account_id = {accountId:String}',
    ...(keyIds === null ? [] : ['key_id IN {keyIds:Array(String)}']),
  ].join(' AND ')
  const columns = ofCosts ? [...groups, UPSTREAM_COST] : groups
  const isKnown = ofCosts ? ` AND ${UPSTREAM_COST} IS NOT NULL` : ''
  const withoutKeys = keyIds === null && !groups.includes('key_id')
  const rollup = ofCosts ? LIVE_NAMES.costs : withoutKeys ? LIVE_NAMES.byModel : LIVE_NAMES.byDay
  const sources = [
    ...(days === null ? [] : [selectFromDays(rollup, columns, which)]),
    ...(edges.length === 0 ? [] : [selectFromCalls(edges, columns, which + isKnown)]),
  ]
  if (sources.length === 0) return null
  const ends = edges.flatMap(({ from, to }, edge) => [
    [`from${edge}`, toClickHouseInstant(from)],
    [`to${edge}`, toClickHouseInstant(to)],
  ])
  return {
    query: sources.join(' UNION ALL '),
    parameters: {
      timezone,
      ...(accountId !== null && { accountId }),
      ...(keyIds !== null && { keyIds }),
      ...(days !== null && { firstDay: toClickHouseDay(days.from), dayBehind: toClickHouseDay(days.to) }),
      ...Object.fromEntries(ends),
    },
  }
}

/** The sums of rows, in the statement that sums them up. */
export const SUMS = `
  sum(requests) AS calls, toString(toInt128(sum(cost) * 100000000)) AS cost_units,
  sum(input_tokens) AS input, sum(output_tokens) AS output, sum(cached_tokens) AS cached`

/** As `SUMS` yields them; 64-bit numbers come as strings. */
export interface SumsRow {
  readonly calls: string
  /** Counts 1e-8 credit. */
  readonly cost_units: string
  readonly input: string
  readonly output: string
  readonly cached: string
}

export const toSums = (row: SumsRow): CallSums => ({
  requests: Number(row.calls),
  cost: BigInt(row.cost_units),
  inputTokens: Number(row.input),
  outputTokens: Number(row.output),
  cachedTokens: Number(row.cached),
})
