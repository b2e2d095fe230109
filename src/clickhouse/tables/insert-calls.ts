/** Rows into the table of calls and its rollup, exactly once for each range. */
import { Readable } from 'node:stream'
import type { ClickHouseClient } from '@clickhouse/client'
import { COPIED_COLUMNS } from '../../../schemas/call-log/columns.ts'
import { readRetainedFrom } from './marks.ts'
import { LIVE_NAMES } from './names.ts'

/** The rows of a range: all of them, and the same ones whenever the range is sent. */
export interface CallRange {
  /** The same for every try at the same range, and for no other range. */
  readonly token: string
  /** Usage rows with the columns of `COPIED_COLUMNS`, each with the newline that ends it. */
  readonly text: Buffer
}

const NEWLINE = 0x0a
/** The table's partition of a row, with which its line begins: `2026-01`. */
const MONTH_BYTES = 7

const toMonth = (epochMs: number): string => new Date(epochMs).toISOString().slice(0, MONTH_BYTES)

interface MonthRows {
  rows: number
  /** Pieces of the text: one, unless rows of months alternate. */
  readonly pieces: Buffer[]
}

const haveOneMonth = (text: Buffer, lineAt: number, otherAt: number): boolean => {
  for (let byte = 0; byte < MONTH_BYTES; byte++)
    if (text[lineAt + byte] !== text[otherAt + byte]) return false
  return true
}

function groupByMonth(text: Buffer): Map<string, MonthRows> {
  const months = new Map<string, MonthRows>()
  let end = 0
  for (let start = 0; start < text.length; start = end) {
    const name = text.toString('latin1', start, start + MONTH_BYTES)
    const month = months.get(name) ?? { rows: 0, pieces: [] }
    months.set(name, month)
    while (end < text.length && haveOneMonth(text, start, end)) {
      end = text.indexOf(NEWLINE, end) + 1
      if (end === 0) throw new Error('The last usage row is cut off')
      month.rows += 1
    }
    month.pieces.push(text.subarray(start, end))
  }
  return months
}

/** Returns those of the months that the log still keeps. Unfinished months are never dropped, and need no query. */
async function readRetainedMonths(
  client: ClickHouseClient,
  months: Map<string, MonthRows>,
): Promise<[string, MonthRows][]> {
  const all = [...months]
  const thisMonth = toMonth(Date.now())
  if (all.every(([month]) => month === thisMonth)) return all
  const firstKept = toMonth(await readRetainedFrom(client))
  return all.filter(([month]) => month >= firstKept)
}

/**
 * Inserts a range and returns how many rows it has, without those that were dropped by age. Each month is one insert
 * with a deduplication token made from range and month: it writes one part of the table, and one of each table derived
 * from it. A part is written whole or not at all, and a table that has a token already ignores the insert.
 */
export async function insertCalls(
  client: ClickHouseClient,
  range: CallRange,
  table: string = LIVE_NAMES.calls,
): Promise<number> {
  let rows = 0
  for (const [name, month] of await readRetainedMonths(client, groupByMonth(range.text))) {
    await client.insert({
      table,
      columns: COPIED_COLUMNS as [string, ...string[]],
      values: Readable.from(month.pieces, { objectMode: false }),
      format: 'TabSeparated',
      clickhouse_settings: {
        insert_deduplicate: 1,
        insert_deduplication_token: `${range.token}:${name}`,
        // After an interruption between table and rollup: the table has the rows already, the rollup gets them now.
        deduplicate_blocks_in_dependent_materialized_views: 1,
        async_insert: 0,
        wait_end_of_query: 1,
      },
    })
    rows += month.rows
  }
  return rows
}
