/**
 * Wallet and settlement, from the journal to the books, run from a seed under a virtual clock: processes die between
 * and within steps, machines lose power, disks fill, engines go and come back without their data, messages are lost,
 * doubled and late. The journal, both ends of the settlement pipeline, the credentials and the wallet views are the
 * real ones; files, NATS and PostgreSQL are models.
 *
 * `TOLLGATE_SEED=<seed>` runs that seed alone.
 */
import t from 'tap'
import { MUTATIONS } from './faults.ts'
import { runSeeds } from './run-seeds.ts'
import { simulate } from './world.ts'

const RUNS = 2_000
/** Seeds within which each error that is put in must be found. */
const RUNS_PER_MUTATION = 300

const given = process.env.TOLLGATE_SEED

if (given !== undefined) {
  t.test(`seed ${given}`, async (t) => {
    const { problems } = await simulate(Number(given))
    t.same(problems, [])
  })
} else {
  t.test(`${RUNS} seeds: one row a call, one charge at most, all sums agree, nothing is open`, async (t) => {
    const half = RUNS / 2
    const halves = await runSeeds(RUNS)
    const failures = halves.flatMap((summary) => summary.failures)
    t.same(failures, [])
    // Not because nothing happened.
    for (const { deaths, rows, interrupted } of halves)
      t.ok(deaths > half && rows > half && interrupted > half / 10, `${deaths} ${rows} ${interrupted}`)
  })

  t.test('a seed gives the same run every time', async (t) => {
    for (const seed of [1, 2, 3, 4, 5]) t.same(await simulate(seed), await simulate(seed))
  })

  for (const mutation of MUTATIONS)
    t.test(`an error put in is found: ${mutation}`, async (t) => {
      let found: string | undefined
      for (let seed = 1; seed <= RUNS_PER_MUTATION && found === undefined; seed++)
        found = (await simulate(seed, mutation)).problems[0]
      t.type(found, 'string')
    })
}
