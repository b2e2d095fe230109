/** Fills the call log month by month in the order of booking, then merges as an idle server does. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Statements } from '../engines/clickhouse-statements.ts'
import { COLUMNS, type RowsWanted, rowAt, rowsSql } from './generator.ts'
import { END_MS, START_MS } from './population.ts'

/** One INSERT. */
interface Batch {
  readonly from: number
  readonly to: number
  /** Its month ends before this instant, epoch milliseconds. */
  readonly before: number
}

const TABLES = ['calls_by_day', 'calls_by_model', 'calls_failed', 'calls']
const TABLE_LIST = TABLES.map((table) => `'${table}'`).join(', ')
const ROWS_A_BATCH = 1_000_000
/** The newest rows arrive in small batches, as the service books them, and stay in unmerged parts. */
const FRESH_BATCHES = 20
const ROWS_A_FRESH_BATCH = 5_000
/** Their largest share of all rows. */
const FRESH_PART = 0.02

const listMonths = (start: number, end: number): { from: number; to: number }[] => {
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

/** Returns the batches: every row once, in the order of ids, no batch with two months. */
export const listBatches = (total: number): Batch[] => {
  const fresh = Math.min(FRESH_BATCHES * ROWS_A_FRESH_BATCH, Math.floor(total * FRESH_PART))
  const freshFrom = total - fresh
  return listMonths(START_MS, END_MS).flatMap(({ from, to }) => {
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

interface YearRows {
  readonly year: string
  readonly calls: string
  readonly summed: string
  readonly summedByModel: string
  readonly failed: string
  readonly failedCopied: string
}

const isFailed = `status != 'success' OR error_code != ''`

/**
 * After an interrupted run, returns how many rows the complete first years have, and drops all later partitions. A year
 * is a partition.
 */
export const keepWholeYears = async (statements: Statements, total: number): Promise<number> => {
  const found = await statements.rows<YearRows>(`
    SELECT year, sum(n) AS calls, sum(d) AS summed, sum(m) AS summedByModel, sum(f) AS failed, sum(c) AS failedCopied FROM (
      SELECT toString(toYear(created_at)) AS year, count() AS n, 0 AS d, 0 AS m, countIf(${isFailed}) AS f, 0 AS c
      FROM calls GROUP BY year
      UNION ALL SELECT toString(toYear(day)) AS year, 0, sum(requests), 0, 0, 0 FROM calls_by_day GROUP BY year
      UNION ALL SELECT toString(toYear(day)) AS year, 0, 0, sum(requests), 0, 0 FROM calls_by_model GROUP BY year
      UNION ALL SELECT toString(toYear(created_at)) AS year, 0, 0, 0, 0, count() FROM calls_failed GROUP BY year
    ) GROUP BY year`)
  const byYear = new Map(found.map((row) => [row.year, row]))
  let kept = 0
  for (let from = START_MS; from < END_MS; ) {
    const year = new Date(from).getUTCFullYear()
    const to = Date.UTC(year + 1, 0, 1)
    const wanted = String(rowAt(to, total) - rowAt(from, total))
    const there = byYear.get(String(year))
    if (there?.calls !== wanted || there.summed !== wanted || there.summedByModel !== wanted) break
    if (there.failedCopied !== there.failed) break
    byYear.delete(String(year))
    kept = rowAt(to, total)
    from = to
  }
  for (const year of byYear.keys())
    for (const table of TABLES) await statements.run(`ALTER TABLE ${table} DROP PARTITION ID '${year}'`)
  return kept
}

interface CallLogWanted extends Pick<RowsWanted, 'seed' | 'accounts' | 'total'> {
  /** The rows that exist already, in complete years. */
  readonly present: number
  /** Called after each batch with the number of stored rows. Throws to end the work. */
  onRows(rows: number): void
}

/** Fills the tables, which have the rows of the first years or none. */
export const fillCallLog = async (statements: Statements, wanted: CallLogWanted): Promise<void> => {
  const { onRows, present, ...rows } = wanted
  const columns = COLUMNS.join(', ')
  for (const batch of listBatches(wanted.total)) {
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

const listPartitions = (statements: Statements): Promise<Partition[]> =>
  statements.rows<Partition>(`
    SELECT table, partition_id AS partition, count() AS parts FROM system.parts
    WHERE active AND database = currentDatabase() AND table IN (${TABLE_LIST})
    GROUP BY table, partition ORDER BY partition, table`)

interface MergeResult {
  /** Returns the partitions with more than one part, in all tables. */
  readonly unmerged: number
  readonly parts: number
  readonly partitions: number
}

/**
 * Merges every year but the last to a single part, as a server does in the course of months. Waits for background merges
 * until the limit.
 */
export const settleParts = async (
  statements: Statements,
  limitMs: number,
  onPartition: (partition: string) => void,
): Promise<MergeResult> => {
  const until = performance.now() + limitMs
  const partitions = await listPartitions(statements)
  const last = partitions.at(-1)?.partition
  for (const { table, partition, parts } of partitions) {
    if (partition === last || parts === '1' || performance.now() > until) continue
    onPartition(`${table} of ${partition}`)
    await statements.run(`OPTIMIZE TABLE ${table} PARTITION ID '${partition}' FINAL`)
  }
  while (performance.now() < until) {
    const [merges] = await statements.rows<{ n: string }>('SELECT count() AS n FROM system.merges')
    if (merges!.n === '0') break
    await delay(QUIET_POLL_MS)
  }
  const after = await listPartitions(statements)
  return {
    unmerged: after.filter(({ parts }) => parts !== '1').length,
    parts: after.reduce((sum, { parts }) => sum + Number(parts), 0),
    partitions: after.length,
  }
}

/** Throws unless every row is stored and the sums by day agree with the rows. */
export const assertWhole = async (statements: Statements, total: number): Promise<void> => {
  const [calls] = await statements.rows<{ n: string; cost: string }>(
    'SELECT count() AS n, toString(sum(cost)) AS cost FROM calls',
  )
  const sumsIn = async (table: string) => {
    const [sums] = await statements.rows<{ n: string; cost: string }>(
      `SELECT sum(requests) AS n, toString(sum(cost)) AS cost FROM ${table}`,
    )
    return sums!
  }
  const [failed] = await statements.rows<{ n: string; copied: string }>(
    `SELECT countIf(${isFailed}) AS n, (SELECT count() FROM calls_failed) AS copied FROM calls`,
  )
  if (failed!.n !== failed!.copied)
    throw new Error(`${failed!.copied} of ${failed!.n} failed calls are in the table of failed calls`)
  if (Number(calls!.n) !== total) throw new Error(`the call log has ${calls!.n} of ${total} calls`)
  for (const table of ['calls_by_day', 'calls_by_model']) {
    const sums = await sumsIn(table)
    if (sums.n === calls!.n && sums.cost === calls!.cost) continue
    throw new Error(`${calls!.n} calls cost ${calls!.cost}; in ${table} ${sums.n} cost ${sums.cost}`)
  }
}

/** Returns the bytes on the disk, by table. */
export const callLogBytes = async (statements: Statements): Promise<Record<string, number>> => {
  const rows = await statements.rows<{ table: string; bytes: string }>(`
    SELECT table, sum(bytes_on_disk) AS bytes FROM system.parts
    WHERE active AND database = currentDatabase() AND table IN (${TABLE_LIST}) GROUP BY table`)
  return Object.fromEntries(rows.map(({ table, bytes }) => [table, Number(bytes)]))
}
