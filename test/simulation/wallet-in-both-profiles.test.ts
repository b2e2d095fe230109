/**
 * A wallet never falls below its documented bound, by either formula of the estimate, with stored conversations, clients
 * that leave early, and reasoning next to the limit. See docs/architecture.md, "The bound".
 *
 * `TOLLGATE_SEED=<seed>` runs that seed alone.
 */
import t from 'tap'
import { ESTIMATES } from '../../schemas/config/catalog.ts'
import { PAID_CALL_MUTATIONS, simulatePaidCalls } from './paid-calls.ts'
import { Random } from './random.ts'

const RUNS = 300
/** Seeds within which each error that is put in must be found. */
const RUNS_PER_MUTATION = 300

const given = process.env.TOLLGATE_SEED
const seeds = given === undefined ? Array.from({ length: RUNS }, (_, at) => at + 1) : [Number(given)]

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
    if (given === undefined)
      t.ok(sums.admitted > RUNS && sums.refused > RUNS && sums.dearer > 0, JSON.stringify(sums))
  })

for (const mutation of PAID_CALL_MUTATIONS)
  t.test(`an error put in is found: ${mutation}`, async (t) => {
    let found: string | null = null
    for (let seed = 1; seed <= RUNS_PER_MUTATION && found === null; seed++)
      found = simulatePaidCalls(new Random(seed), 'worst_case', mutation).problem
    t.type(found, 'string')
  })
