/** What is written as an array is read as it was, whatever its elements. */
import fc from 'fast-check'
import t from 'tap'
import { startDatabase } from './support.ts'

const { sql } = await startDatabase(t)

const RUNS = { numRuns: 100 }
// PostgreSQL's text has no NUL.
const texts = fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\0', '').toWellFormed())
const awkward = fc.constantFrom('NULL', 'null', '', ' ', '{}', '"', '\\', ',', '\\"', '\n', '{"a,b"}')
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })

t.test('text', async (t) => {
  const arrays = fc.array(fc.option(fc.oneof(texts, awkward)))
  const check = fc.asyncProperty(arrays, async (values) => {
    const [row] = await sql`SELECT ${values}::text[] AS values, cardinality(${values}::text[]) AS count`
    t.same(row, { values, count: values.length })
  })
  await fc.assert(check, RUNS)
})

t.test('text of megabytes', async (t) => {
  const values = ['x'.repeat(10_000_000), '"']
  const [row] = await sql`SELECT ${values}::text[] AS values`
  t.ok(row?.values[0] === values[0] && row?.values[1] === values[1])
})

t.test('numbers', async (t) => {
  const arrays = fc.tuple(
    fc.array(fc.option(int64)),
    fc.array(fc.integer()),
    fc.array(fc.integer({ min: -32_768, max: 32_767 })),
    fc.array(fc.double({ noNaN: true }).map((value) => value + 0)),
  )
  const check = fc.asyncProperty(arrays, async ([bigints, integers, smallints, doubles]) => {
    const [row] = await sql`
      SELECT ${bigints.map((value) => (value === null ? null : String(value)))}::bigint[] AS bigints, ${integers}::integer[] AS integers,
        ${smallints}::smallint[] AS smallints, ${doubles}::float8[] AS doubles`
    t.same(row, { bigints, integers, smallints, doubles })
  })
  await fc.assert(check, RUNS)
})
