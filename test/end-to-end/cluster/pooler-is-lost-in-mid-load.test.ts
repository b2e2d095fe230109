/**
 * PgBouncer in front of PostgreSQL is killed and started again while the service is called: every call is booked once.
 * Prints how many calls failed, and for how long.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startEngines } from '../../support/engines.ts'
import { startPgBouncer } from '../../support/pgbouncer.ts'
import { underLoad } from '../chaos/outage.ts'
import { seedNote, seeds } from '../chaos/plan.ts'
import { figuresOf, printFigures } from './figures.ts'

const BEFORE = 60
const AFTER = 200
const AWAY_MS = 3_000

const [seed = 0] = seeds()
t.comment(seedNote(seed))

await t.test('the pooler is away for three seconds', async (t) => {
  const engines = await startEngines(t)
  const { url, program } = await startPgBouncer(t, engines.databaseUrl)
  const env = { DATABASE_URL: url, DATABASE_SESSION_URL: engines.databaseUrl }
  const { load, more, finish } = await underLoad(t, seed, { engines, env })
  await more(BEFORE)
  const seenBefore = load.seen.length
  await program.kill()
  await sleep(AWAY_MS)
  await program.start()
  await more(AFTER)
  const figures = figuresOf(load.seen.slice(seenBefore))
  t.comment(printFigures(figures))
  t.equal(figures.failed, 0, 'no call of a known key fails')
  await finish(t)
})
