/** PostgreSQL finds the same beginnings of periods as ICU, where clocks are changed too, and periods leave no gap. */
import fc from 'fast-check'
import t from 'tap'
import { BUDGET_PERIODS } from '../../../../schemas/accounts/budget.ts'
import { startDatabase } from '../support.ts'
import { periodStart, ZONES } from './local-periods.ts'

const { sql } = await startDatabase(t)
const HOUR_MS = 3_600_000
const FROM = Date.UTC(2024, 0, 1)
const TO = Date.UTC(2026, 0, 1)
const SEED = 20261124

async function startsOf(period: string, zone: string, instants: readonly number[]): Promise<number[]> {
  const rows = await sql<{ start: bigint; next: bigint; again: bigint; last: bigint }[]>`
    SELECT start, next, period_start(${period}, ${zone}, start) AS again, period_start(${period}, ${zone}, next - 1) AS last
    FROM unnest(${instants as number[]}::bigint[]) WITH ORDINALITY AS i(at, position),
      period_start(${period}, ${zone}, at) AS start, period_start(${period}, ${zone}, at, 1) AS next
    ORDER BY position`
  for (const [index, { start, next, again, last }] of rows.entries()) {
    const at = BigInt(instants[index]!)
    if (!(start <= at && at < next && again === start && last === start))
      throw new Error(
        `The ${period} of ${at} in ${zone} is from ${start} to ${next}, but begins at ${again} and ${last}`,
      )
  }
  return rows.map(({ start }) => Number(start))
}

t.test('any instant, in every zone and period', async () => {
  const instants = fc.array(fc.integer({ min: FROM, max: TO }), { minLength: 20, maxLength: 20 })
  const property = fc.asyncProperty(
    fc.constantFrom(...BUDGET_PERIODS),
    fc.constantFrom(...ZONES),
    instants,
    async (period, zone, all) => {
      const expected = all.map((at) => periodStart(period, zone, at))
      const found = await startsOf(period, zone, all)
      for (const [index, start] of found.entries())
        if (start !== expected[index])
          throw new Error(`${new Date(all[index]!).toISOString()} began at ${start}, not ${expected[index]}`)
    },
  )
  await fc.assert(property, { seed: SEED, numRuns: 60 })
})

t.test('each hour around every change of clocks', async (t) => {
  for (const zone of ZONES) {
    const instants: number[] = []
    for (const month of [2, 3, 9, 10])
      for (let at = Date.UTC(2025, month, 1); at < Date.UTC(2025, month + 1, 2); at += HOUR_MS)
        instants.push(at - 1, at)
    const days = instants.map((at) => periodStart('day', zone, at))
    t.same(await startsOf('day', zone, instants), days, zone)
  }
})

t.test('an unknown zone is an error, not another zone', async (t) => {
  await t.rejects(sql`SELECT period_start('day', 'Nowhere/City', 0)`, /time zone/)
})
