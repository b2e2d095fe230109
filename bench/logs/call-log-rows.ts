/** Fills the call log: month by month as the rows were booked, then what a server does with them while it idles. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Statements } from './clickhouse-statements.ts'
import { COLUMNS, type RowsWanted, rowAt, rowsSql } from './generator.ts'
import { END_MS, START_MS } from './population.ts'

/** One INSERT. */
export interface Batch {
  readonly from: number
  readonly to: number
  /** Its month ends before this instant, epoch milliseconds. */
  readonly before: number
}

const TABLES = ['calls', 'calls_by_day']
const TABLE_LIST = TABLES.map((table) => `'${table}'`).join(', ')
const ROWS_A_BATCH = 1_000_000
/** The newest rows come as the service books them: in parts that nobody has merged yet. */
const FRESH_BATCHES = 20
const ROWS_A_FRESH_BATCH = 5_000
/** They are so much of all rows at most. */
const FRESH_PART = 0.02

const monthsOf = (start: number, end: number): { from: number; to: number }[] => {
  const months: { from: number; to: number }[] = []
  for (let from = start; from < end; ) {
    const day = new Date(from)
    const to = Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 1)
    months.push({ from, to })
    from = to
  }
  return months
}

const cut = (from: number, to: number, most: number): { from: number; to: number }[] => {
  const parts = Math.ceil((to - from) / most)
  const at = (part: number): number => from + Math.round(((to - from) * part) / parts)
  return Array.from({ length: parts }, (_, part) => ({ from: at(part), to: at(part + 1) }))
}

/** Every row once, none of two months in one batch, in the order of their ids. */
export const batchesOf = (total: number): Batch[] => {
  const fresh = Math.min(FRESH_BATCHES * ROWS_A_FRESH_BATCH, Math.floor(total * FRESH_PART))
  const freshFrom = total - fresh
  return monthsOf(START_MS, END_MS).flatMap(({ from, to }) => {
    const first = rowAt(from, total)
    const behind = rowAt(to, total)
    const settled = cut(first, Math.min(behind, freshFrom), ROWS_A_BATCH)
    const isLast = to >= END_MS
    return [...settled, ...(isLast ? cut(freshFrom, behind, Math.ceil(fresh / FRESH_BATCHES)) : [])].map(
      (batch) => ({
        ...batch,
        before: to,
      }),
    )
  })
}

const monthName = (ms: number): string => new Date(ms).toISOString().slice(0, 7).replace('-', '')

interface MonthRows {
  readonly month: string
  readonly calls: string
  readonly summed: string
}

/**
 * After a run that was broken off: answers how many rows the first months have that are whole, in the rows as in the
 * sums by day, and drops what lies behind them.
 */
export const keepWholeMonths = async (statements: Statements, total: number): Promise<number> => {
  const found = await statements.rows<MonthRows>(`
    SELECT month, sum(n) AS calls, sum(requests) AS summed FROM (
      SELECT toString(toYYYYMM(created_at)) AS month, count() AS n, 0 AS requests FROM calls GROUP BY month
      UNION ALL SELECT toString(toYYYYMM(day)) AS month, 0, sum(requests) FROM calls_by_day GROUP BY month
    ) GROUP BY month`)
  const byMonth = new Map(found.map((row) => [row.month, row]))
  let kept = 0
  for (const { from, to } of monthsOf(START_MS, END_MS)) {
    const wanted = String(rowAt(to, total) - rowAt(from, total))
    const there = byMonth.get(monthName(from))
    if (there?.calls !== wanted || there.summed !== wanted) break
    byMonth.delete(monthName(from))
    kept = rowAt(to, total)
  }
  for (const month of byMonth.keys())
    for (const table of TABLES) await statements.run(`ALTER TABLE ${table} DROP PARTITION ID '${month}'`)
  return kept
}

export interface CallLogWanted extends Pick<RowsWanted, 'seed' | 'accounts' | 'total'> {
  /** So many rows are there, whole months of them. */
  readonly present: number
  /** Called after each batch with the rows that are there. Throws to end the work. */
  onRows(rows: number): void
}

/** The tables are there, with the rows of the first months or none. */
export const fillCallLog = async (statements: Statements, wanted: CallLogWanted): Promise<void> => {
  const { onRows, present, ...rows } = wanted
  const columns = COLUMNS.join(', ')
  for (const batch of batchesOf(wanted.total)) {
    if (batch.to <= present) continue
    await statements.run(
      `INSERT INTO calls (${columns}) SELECT ${columns} FROM (${rowsSql({ ...rows, ...batch })}) SETTINGS max_insert_threads = 2`,
    )
    onRows(batch.to)
  }
}

interface Partition {
  readonly table: string
  readonly partition: string
  readonly parts: string
}

const QUIET_POLL_MS = 250

const partitionsOf = (statements: Statements): Promise<Partition[]> =>
  statements.rows<Partition>(`
    SELECT table, partition_id AS partition, count() AS parts FROM system.parts
    WHERE active AND database = currentDatabase() AND table IN (${TABLE_LIST})
    GROUP BY table, partition ORDER BY partition, table`)

export interface MergeResult {
  /** Partitions with more than one part, in all tables. */
  readonly unmerged: number
  readonly parts: number
  readonly partitions: number
}

/**
 * Merges every month but the last one to a single part, as a server has done long before the month is two years old,
 * and waits until what it merges by itself is done; no longer than the limit.
 */
export const settleParts = async (
  statements: Statements,
  limitMs: number,
  onMonth: (month: string) => void,
): Promise<MergeResult> => {
  const until = performance.now() + limitMs
  const partitions = await partitionsOf(statements)
  const last = partitions.at(-1)?.partition
  for (const { table, partition, parts } of partitions) {
    if (partition === last || parts === '1' || performance.now() > until) continue
    onMonth(partition)
    await statements.run(`OPTIMIZE TABLE ${table} PARTITION ID '${partition}' FINAL`)
  }
  while (performance.now() < until) {
    const [merges] = await statements.rows<{ n: string }>('SELECT count() AS n FROM system.merges')
    if (merges!.n === '0') break
    await delay(QUIET_POLL_MS)
  }
  const after = await partitionsOf(statements)
  return {
    unmerged: after.filter(({ parts }) => parts !== '1').length,
    parts: after.reduce((sum, { parts }) => sum + Number(parts), 0),
    partitions: after.length,
  }
}

/** Throws unless every row is there, and the sums by day are those of the rows. */
export const assertWhole = async (statements: Statements, total: number): Promise<void> => {
  const [calls] = await statements.rows<{ n: string; cost: string }>(
    'SELECT count() AS n, toString(sum(cost)) AS cost FROM calls',
  )
  const [sums] = await statements.rows<{ n: string; cost: string }>(
    'SELECT sum(requests) AS n, toString(sum(cost)) AS cost FROM calls_by_day',
  )
  const found = `${calls!.n} calls that cost ${calls!.cost}; by day ${sums!.n} that cost ${sums!.cost}`
  if (Number(calls!.n) !== total || sums!.n !== calls!.n || sums!.cost !== calls!.cost)
    throw new Error(`the call log does not hold what was put in: ${found}; ${total} were made`)
}

/** Bytes on the disk, by table. */
export const callLogBytes = async (statements: Statements): Promise<Record<string, number>> => {
  const rows = await statements.rows<{ table: string; bytes: string }>(`
    SELECT table, sum(bytes_on_disk) AS bytes FROM system.parts
    WHERE active AND database = currentDatabase() AND table IN (${TABLE_LIST}) GROUP BY table`)
  return Object.fromEntries(rows.map(({ table, bytes }) => [table, Number(bytes)]))
}
