/**
 * A wallet that many processes serve at once never falls below its documented bound: one hundredth of its highest balance
 * for each process.
 *
 * `TOLLGATE_SEED=<seed>` runs that seed alone.
 */
import t from 'tap'
import { Random } from './random.ts'
import { simulateWallet, WALLET_MUTATIONS } from './wallets.ts'

const RUNS = 2_000
/** Seeds within which each error that is put in must be found. */
const RUNS_PER_MUTATION = 500

const given = process.env.TOLLGATE_SEED
const seeds = given === undefined ? Array.from({ length: RUNS }, (_, at) => at + 1) : [Number(given)]

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
  if (given === undefined)
    t.ok(sums.alone > RUNS && sums.shared > RUNS && sums.refused > RUNS, JSON.stringify(sums))
})

for (const mutation of WALLET_MUTATIONS)
  t.test(`an error put in is found: ${mutation}`, async (t) => {
    let found: string | null = null
    for (let seed = 1; seed <= RUNS_PER_MUTATION && found === null; seed++)
      found = simulateWallet(new Random(seed), mutation).problem
    t.type(found, 'string')
  })
