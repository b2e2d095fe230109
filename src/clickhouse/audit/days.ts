/**
 * Compares the sums by day with their calls. An insert reaches the calls first and the sums a moment later, so while
 * rows arrive the two agree at no instant: a difference is a sum below all calls that were copied permanently, or
 * above all calls that exist after it.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import { printCredits } from '../../../schemas/money.ts'
import { readRows } from '../connection.ts'
import { isInMonth, listMonths, toMonth } from '../tables/months.ts'

/** With keys and without: a difference that both have is named once. */
const ROLLUPS = ['calls_by_day', 'calls_by_model'] as const
const TABLES = [{ table: 'calls', at: 'created_at' }, ...ROLLUPS.map((table) => ({ table, at: 'day' }))]

const MEASURES = ['requests', 'cost', 'input_tokens', 'output_tokens', 'cached_tokens'] as const
type Measure = (typeof MEASURES)[number]

export interface DayDifference {
  readonly account_id: string
  readonly kind: `day_${Measure}`
  /** The UTC day. */
  readonly ref: string
  /** Credits as decimal strings, or a number. */
  readonly expected: string
  readonly found: string
}

/** The most months of accounts whose differences are listed by day. */
const MAX_NAMED_MONTHS = 20

/** Of one account, and of one day where differences are given by day; all values as text, costs count 1e-8 credit. */
type SumRow = { readonly account_id: string; readonly day: string } & {
  readonly [Name in `${Measure}_${'summed' | 'copied' | 'there'}`]?: string
}

interface Span {
  readonly month: string
  readonly upto: bigint
  /** Null: all accounts, and the month as a whole. */
  readonly accountId: string | null
}

const printSum = (measure: Measure, sum: string): string =>
  measure === 'cost' ? `toString(toInt128(${sum} * 100000000))` : `toString(${sum})`

const SUMMED = MEASURES.map((measure) => `${printSum(measure, `sum(${measure})`)} AS ${measure}_summed`).join(
  ', ',
)
const nameCountedColumn = (measure: Measure): string => (measure === 'requests' ? 'call_count' : measure)
const COUNTED = MEASURES.flatMap((measure) => [
  `${printSum(measure, `sumIf(${nameCountedColumn(measure)}, id <= {upto:UInt64})`)} AS ${measure}_copied`,
  `${printSum(measure, `sum(${nameCountedColumn(measure)})`)} AS ${measure}_there`,
]).join(', ')

async function sumByDay(
  client: ClickHouseClient,
  query: string,
  at: string,
  { month, upto, accountId }: Span,
) {
  const rows = await readRows<SumRow & { day_text: string }>(client, {
    query: `${query} WHERE ${isInMonth(at)}
      ${accountId === null ? '' : 'AND account_id = {accountId:String}'} GROUP BY account_id, day_text`,
    query_params: { month, upto: upto.toString(), ...(accountId !== null && { accountId }) },
  })
  return new Map(rows.map((row) => [`${row.account_id} ${row.day_text}`, { ...row, day: row.day_text }]))
}

async function findDifferences(client: ClickHouseClient, span: Span): Promise<DayDifference[]> {
  const selectDay = (day: string): string =>
    `${span.accountId === null ? `''` : `toString(${day})`} AS day_text`
  // The sums first: all calls that are in them exist when the calls are read.
  const rollups: Map<string, SumRow>[] = []
  for (const table of ROLLUPS)
    rollups.push(
      await sumByDay(client, `SELECT account_id, ${selectDay('day')}, ${SUMMED} FROM ${table}`, 'day', span),
    )
  const counted = await sumByDay(
    client,
    `SELECT account_id, ${selectDay(`toDate(created_at, 'UTC')`)}, ${COUNTED} FROM calls`,
    'created_at',
    span,
  )
  const named = rollups.flatMap((summed) => compareSums(summed, counted))
  return [...new Map(named.map((difference) => [Object.values(difference).join(' '), difference])).values()]
}

type SumRows = ReadonlyMap<string, SumRow>

const compareSums = (summed: SumRows, counted: SumRows): DayDifference[] =>
  [...new Map([...summed, ...counted])].flatMap(([key, { account_id, day }]) =>
    MEASURES.flatMap((measure) => {
      const found = BigInt(summed.get(key)?.[`${measure}_summed`] ?? 0)
      const least = BigInt(counted.get(key)?.[`${measure}_copied`] ?? 0)
      const most = BigInt(counted.get(key)?.[`${measure}_there`] ?? 0)
      if (found >= least && found <= most) return []
      const print = (value: bigint): string => (measure === 'cost' ? printCredits(value) : String(value))
      const kind = `day_${measure}` as const
      return [
        { account_id, kind, ref: day, expected: print(found < least ? least : most), found: print(found) },
      ]
    }),
  )

/**
 * Returns the days that differ, in the months from an instant on; null: in all. Rows with the id `upto` and below were
 * copied permanently.
 */
export async function compareDays(
  client: ClickHouseClient,
  upto: bigint,
  since: Date | null,
): Promise<DayDifference[]> {
  const accountMonths: Span[] = []
  const first = since === null ? '' : toMonth(since.getTime())
  for (const month of await listMonths(client, TABLES)) {
    if (month < first) continue
    const found = await findDifferences(client, { month, upto, accountId: null })
    const accountIds = [...new Set(found.map(({ account_id }) => account_id))].sort()
    accountMonths.push(...accountIds.map((accountId) => ({ month, upto, accountId })))
  }
  const named: DayDifference[] = []
  for (const span of accountMonths.slice(0, MAX_NAMED_MONTHS))
    named.push(...(await findDifferences(client, span)))
  return named
}
