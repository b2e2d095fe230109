/**
 * While NATS is down, calls go on; settlements are kept in the journal and booked when it is back.
 * See docs/failure-modes.md, "Engines", row 47.
 */
import t from 'tap'
import { connect } from '../../../src/postgres/connection.ts'
import { eventually } from '../../support/service.ts'
import { gauge } from './gauge.ts'
import { isToldDown, refusals, underLoad } from './outage.ts'
import { seedNote, seeds, TIMEOUT_MS } from './plan.ts'

const ENOUGH = 80

t.setTimeout(TIMEOUT_MS)
for (const seed of seeds())
  await t.test(seedNote(seed), async (t) => {
    const { service, load, more, finish } = await underLoad(t, seed)
    const sql = connect(service.engines.databaseUrl, { max: 1, name: 'test' })
    t.teardown(() => sql.end())
    const booked = async () => Number((await sql`SELECT count(*) FROM usage_rows`)[0]?.count)
    const unbooked = () => gauge(service, 'tollgate_journal_unbooked')
    await more(ENOUGH)
    await service.engines.stopEngine('nats')
    const before = await booked()
    await more(ENOUGH)
    t.ok((await unbooked()) >= ENOUGH, 'what was not booked is kept')
    t.ok((await booked()) - before < ENOUGH, 'and is not booked')
    await isToldDown(t, service, { name: 'nats', title: 'NATS' })
    t.ok((await gauge(service, 'tollgate_settlement_lag_seconds')) > 0, 'the lag is reported')

    await service.kill()
    await service.start()
    await more(ENOUGH)
    t.ok(
      (await unbooked()) >= 2 * ENOUGH,
      'a start without NATS keeps what an earlier run left, and takes calls',
    )

    await service.engines.startEngine('nats')
    await eventually('it is booked', async () => ((await booked()) >= before + 2 * ENOUGH ? true : undefined))
    await more(ENOUGH)
    service.engines.killEngine('nats')
    await more(ENOUGH)
    t.same(refusals(load.seen), [], 'no call was refused for it')
    await finish(t)
  })
