/** Wallets in virtual time. `TOLLGATE_SEED=<seed>` runs that seed alone, `TOLLGATE_SEED=<first>-<last>` those. */

import t from 'tap'
import { ESTIMATES } from '../../schemas/config/catalog.ts'
import { MUTATIONS } from './faults.ts'
import { PAID_CALL_MUTATIONS, simulatePaidCalls } from './paid-calls.ts'
import { Random, readSeeds } from './random.ts'
import { runSeeds } from './run-seeds.ts'
import { simulateWallet, WALLET_MUTATIONS } from './wallets.ts'
import { simulate } from './world.ts'

t.test('wallet and settlement', async (t) => {
  // * Wallet and settlement, from the journal to the books, run from a seed under a virtual clock: processes die between
  // and within steps, machines lose power, disks fill, engines go and come back without their data, messages are lost,
  // doubled and late. The journal, both ends of the settlement pipeline, the credentials and the wallet views are the
  // real ones; files, NATS and PostgreSQL are models.
  const RUNS = 300
  /** Seeds within which each error that is put in must be found. */
  const RUNS_PER_MUTATION = 300

  const given = readSeeds()

  if (given !== null) {
    for (const seed of given)
      t.test(`seed ${seed}`, async (t) => {
        const { problems } = await simulate(seed)
        t.same(problems, [])
      })
  } else {
    t.test(
      `${RUNS} seeds: one row a call, one charge at most, all sums agree, nothing is open`,
      async (t) => {
        const half = RUNS / 2
        const halves = await runSeeds(RUNS)
        const failures = halves.flatMap((summary) => summary.failures)
        t.same(failures, [])
        // Not because nothing happened.
        for (const { deaths, rows, interrupted } of halves)
          t.ok(deaths > half && rows > half && interrupted > half / 10, `${deaths} ${rows} ${interrupted}`)
      },
    )

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
})

t.test('wallet in both profiles', async (t) => {
  // * A wallet never falls below its documented bound, by either formula of the estimate, with stored conversations, clients
  // that leave early, and reasoning next to the limit. See docs/architecture.md, "The bound".
  const RUNS = 50
  /** Seeds within which each error that is put in must be found. */
  const RUNS_PER_MUTATION = 300

  const given = readSeeds()
  const seeds = given ?? Array.from({ length: RUNS }, (_, at) => at + 1)

  for (const mode of ESTIMATES)
    t.test(`${mode}: the balance never falls below minus the documented bound`, async (t) => {
      const failures: string[] = []
      const sums = { admitted: 0, refused: 0, dearer: 0 }
      for (const seed of seeds) {
        const { problem, admitted, refused, dearer } = simulatePaidCalls(new Random(seed), mode)
        if (problem !== null) failures.push(`TOLLGATE_SEED=${seed}: ${problem}`)
        sums.admitted += admitted
        sums.refused += refused
        sums.dearer += dearer
      }
      t.same(failures.slice(0, 3), [])
      if (given === null)
        t.ok(sums.admitted > RUNS && sums.refused > RUNS && sums.dearer > 0, JSON.stringify(sums))
    })

  for (const mutation of PAID_CALL_MUTATIONS)
    t.test(`an error put in is found: ${mutation}`, async (t) => {
      let found: string | null = null
      for (let seed = 1; seed <= RUNS_PER_MUTATION && found === null; seed++)
        found = simulatePaidCalls(new Random(seed), 'worst_case', mutation).problem
      t.type(found, 'string')
    })
})

t.test('wallet over processes', async (t) => {
  // * A wallet that many processes serve at once never falls below its documented bound: one hundredth of its highest balance
  // for each process.
  const RUNS = 2_000
  /** Seeds within which each error that is put in must be found. */
  const RUNS_PER_MUTATION = 500

  const given = readSeeds()
  const seeds = given ?? Array.from({ length: RUNS }, (_, at) => at + 1)

  t.test('the balance never falls below minus the documented bound', async (t) => {
    const failures: string[] = []
    const sums = { alone: 0, shared: 0, refused: 0 }
    for (const seed of seeds) {
      const { problem, alone, shared, refused } = simulateWallet(new Random(seed))
      if (problem !== null) failures.push(`TOLLGATE_SEED=${seed}: ${problem}`)
      sums.alone += alone
      sums.shared += shared
      sums.refused += refused
    }
    t.same(failures.slice(0, 5), [])
    if (given === null)
      t.ok(sums.alone > RUNS && sums.shared > RUNS && sums.refused > RUNS, JSON.stringify(sums))
  })

  for (const mutation of WALLET_MUTATIONS)
    t.test(`an error put in is found: ${mutation}`, async (t) => {
      let found: string | null = null
      for (let seed = 1; seed <= RUNS_PER_MUTATION && found === null; seed++)
        found = simulateWallet(new Random(seed), mutation).problem
      t.type(found, 'string')
    })
})
