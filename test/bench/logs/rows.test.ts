import t from 'tap'
import { batchesOf } from '../../../bench/logs/rows/clickhouse-tables.ts'
import { rowAt } from '../../../bench/logs/rows/generator.ts'
import { END_MS, START_MS } from '../../../bench/logs/rows/population.ts'

const ROWS_A_PART_MOST = 1_000_000

/** When a row ends, but for a disorder of a second: as `rowsSql` has it. */
const endOf = (row: number, total: number): number =>
  START_MS + Number((BigInt(row) * BigInt(END_MS - START_MS)) / BigInt(total))

for (const total of [10_000, 1_000_000, 12_345_678, 100_000_000])
  t.test(`the batches of ${total} rows are all rows, each once, none of two months`, async (t) => {
    const batches = batchesOf(total)
    t.equal(batches[0]!.from, 0)
    t.equal(batches.at(-1)!.to, total)
    t.equal(batches.at(-1)!.before, END_MS)
    t.ok(batches.every(({ from }, i) => i === 0 || from === batches[i - 1]!.to))
    t.ok(batches.every(({ from, to }) => from < to && to - from <= ROWS_A_PART_MOST))
    for (const { from, to, before } of batches) {
      const month = new Date(before - 1).toISOString().slice(0, 7)
      t.equal(new Date(endOf(from, total)).toISOString().slice(0, 7), month)
      t.equal(new Date(endOf(to - 1, total)).toISOString().slice(0, 7), month)
    }
  })

t.test('the row of an instant is the first that ends then or later', async (t) => {
  for (const total of [10_000, 12_345_678])
    for (const ms of [START_MS, START_MS + 1, Date.UTC(2023, 5, 1), Date.UTC(2024, 1, 29, 12, 34, 56, 789)]) {
      const row = rowAt(ms, total)
      t.ok(endOf(row, total) >= ms)
      t.ok(row === 0 || endOf(row - 1, total) < ms)
    }
  t.equal(rowAt(0, 10_000), 0)
  t.equal(rowAt(END_MS, 10_000), 10_000)
  t.equal(rowAt(END_MS + 1, 10_000), 10_000)
})
