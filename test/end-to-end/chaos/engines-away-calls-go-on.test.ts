/**
 * While an engine is down, calls go on: rows appear when ClickHouse is back, settlements are kept in the journal and
 * booked when NATS is, known keys are served without PostgreSQL for the time that the operator allows, then get 503.
 * Nothing is lost. See docs/failure-modes.md, "Engines", rows 46, 47 and 48.
 */
import { writeFile } from 'node:fs/promises'
import t from 'tap'
import { connectTo } from '../../support/connections.ts'
import { type TestService, until } from '../../support/service.ts'
import { gauge } from './gauge.ts'
import type { SeenCall } from './load.ts'
import { isAnswered, isToldDown, readinessForCalls, refusals, underLoad } from './outage.ts'
import { CHAOS_CONFIG, seedNote, seeds, TIMEOUT_MS } from './plan.ts'

const ENOUGH = 80
const SHORT_GRACE = 'database: { grace_seconds: 2 }\n'

const balance = async (service: TestService, key: string) => {
  const response = await service.get(key, '/v1/key/balance')
  const { error } = (await response.json()) as { error?: { code: string } }
  return { status: response.status, code: error?.code }
}

t.setTimeout(TIMEOUT_MS)
for (const seed of seeds())
  await t.test(seedNote(seed), async (t) => {
    const { service, callers, load, more, finish } = await underLoad(t, seed)
    const { engines } = service
    const known = callers[0]?.key ?? ''
    const unknown = await service.newKey('1000')
    let during: SeenCall[] = []

    await t.test('ClickHouse is down, and crashes', async (t) => {
      await more(ENOUGH)
      await engines.stopEngine('clickhouse')
      const before = load.seen.length
      await more(ENOUGH)
      for (const path of ['/v1/logs', '/v1/logs?format=csv', '/v1/logs/1', '/v1/logs/summary']) {
        const logs = await service.get(known, path)
        t.equal(logs.status, 503, `${path} says that it cannot be read`)
        t.match(await logs.json(), { error: { code: 'service_unavailable' } })
      }
      await isToldDown(t, service, { name: 'clickhouse', title: 'ClickHouse' })
      await more(ENOUGH)
      during = load.seen.slice(before).filter(isAnswered)
      await engines.startEngine('clickhouse')
      await more(ENOUGH)
      engines.killEngine('clickhouse')
      await more(ENOUGH)
      t.same(refusals(load.seen), [], 'no call was refused for it')
    })

    await t.test('NATS is down, also at a start of the service, and crashes', async (t) => {
      const sql = connectTo(t, engines.databaseUrl)
      const booked = async () => Number((await sql`SELECT count(*) FROM usage_rows`)[0]?.count)
      const unbooked = () => gauge(service, 'tollgate_journal_unbooked')
      await engines.stopEngine('nats')
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

      await engines.startEngine('nats')
      await until('it is booked', async () => (await booked()) >= before + 2 * ENOUGH)
      await more(ENOUGH)
      engines.killEngine('nats')
      await more(ENOUGH)
      t.same(refusals(load.seen), [], 'no call was refused for it')
    })

    await t.test('PostgreSQL is down within the grace time, and crashes', async (t) => {
      await engines.stopEngine('postgres')
      await more(ENOUGH)
      t.match(await balance(service, unknown.key), { status: 503, code: 'service_unavailable' })
      await isToldDown(t, service, { name: 'postgres', title: 'PostgreSQL' })
      await more(ENOUGH)
      t.same(refusals(load.seen), [], 'no known key was refused')
      await engines.startEngine('postgres')
      await until(
        'the unknown key is known',
        async () => (await balance(service, unknown.key)).status === 200,
      )
      await more(ENOUGH)
      engines.killEngine('postgres')
      await more(ENOUGH)
      t.same(refusals(load.seen), [], 'nor when it crashed')
    })

    await t.test('PostgreSQL is down for longer than that', async (t) => {
      await writeFile(service.configPath, SHORT_GRACE + CHAOS_CONFIG)
      await until('the short grace time is in force', () =>
        service.output().includes('Configuration applied'),
      )
      await until(
        'PostgreSQL answers again',
        async () => (await fetch(`${service.baseUrl}/readyz`)).status === 200,
      )
      await engines.stopEngine('postgres')
      await more(1)
      t.match(await balance(service, known), { status: 200 }, 'known keys are served at first')
      await more(ENOUGH, ({ code }) => code === 'service_unavailable')
      t.match(await balance(service, known), { status: 503, code: 'service_unavailable' })
      t.equal(await readinessForCalls(service), 503, 'a load balancer gets that')
      await engines.startEngine('postgres')
      await more(ENOUGH)
      t.equal(await readinessForCalls(service), 200)
    })

    await finish(t)
    const [someCall] = during
    const rows = callers.map(({ key }) => service.get(key, `/v1/logs?ref=${someCall?.requestId}`))
    const found = await Promise.all(
      rows.map(async (row) => ((await (await row).json()) as { data: [] }).data),
    )
    t.equal(found.flat().length, 1, 'a call that was made while ClickHouse was down is in its log')
  })
