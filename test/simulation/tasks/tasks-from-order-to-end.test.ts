/**
 * Tasks from an order to their end, run from a seed under a virtual clock: processes die between and within steps,
 * PostgreSQL and NATS go and come back without their messages, messages are lost, doubled, late and out of order, clocks
 * jump, upstreams lose answers, hang, fail, and take for ever. Submit, watch, work, sweep and the transitions are the
 * real ones; PostgreSQL, NATS, store and upstreams are models, the first compared with the real one by a test of its own.
 *
 * `TOLLGATE_SEED=<seed>` runs that seed alone, `TOLLGATE_SEED=<first>-<last>` those.
 */
import t from 'tap'
import { FINAL_STATES } from '../../../schemas/tasks/task.ts'
import { readSeeds } from '../random.ts'
import { findErrors, runSeeds } from './run-task-seeds.ts'
import { LIES } from './task-faults.ts'
import { simulate } from './world.ts'

const RUNS = 250
/** Seeds within which each error that is put in must be found. */
const RUNS_PER_LIE = 200

const given = readSeeds()

if (given !== null) {
  for (const seed of given)
    t.test(`seed ${seed}`, async (t) => {
      const { problems } = await simulate(seed)
      t.same(problems, [])
    })
} else {
  t.test(
    `${RUNS} seeds: every hold resolved, each charge as delivered, nothing sent twice or open`,
    async (t) => {
      const half = RUNS / 2
      const halves = await runSeeds(RUNS)
      t.same(
        halves.flatMap(({ failures }) => failures),
        [],
      )
      // Not because nothing happened.
      for (const { deaths, looks, ends } of halves) {
        t.ok(deaths > half / 2 && looks > half, `${deaths} deaths, ${looks} looks`)
        const seldom = FINAL_STATES.filter((state) => state !== 'cancelled' && (ends[state] ?? 0) < half / 50)
        t.same(seldom, [], JSON.stringify(ends))
      }
    },
  )

  t.test('a seed gives the same run every time', async (t) => {
    for (const seed of [1, 2, 3, 4, 5]) t.same(await simulate(seed), await simulate(seed))
  })

  t.test('each error that is put in is found', async (t) => {
    const found = await findErrors(RUNS_PER_LIE)
    for (const [what] of LIES) t.type(found[what], 'string', what)
  })
}
