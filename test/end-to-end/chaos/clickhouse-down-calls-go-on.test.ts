/**
 * While ClickHouse is down, calls go on; their rows appear when it is back.
 * See docs/failure-modes.md, "Engines", row 46.
 */
import t from 'tap'
import { isAnswered, isToldDown, refusals, underLoad } from './outage.ts'
import { seedNote, seeds, TIMEOUT_MS } from './plan.ts'

const ENOUGH = 80

t.setTimeout(TIMEOUT_MS)
for (const seed of seeds())
  await t.test(seedNote(seed), async (t) => {
    const { service, callers, load, more, finish } = await underLoad(t, seed)
    const [caller] = callers
    await more(ENOUGH)
    await service.engines.stopEngine('clickhouse')
    const before = load.seen.length
    await more(ENOUGH)
    for (const path of ['/v1/logs', '/v1/logs?format=csv', '/v1/logs/1', '/v1/logs/summary']) {
      const logs = await service.get(caller?.key ?? '', path)
      t.equal(logs.status, 503, `${path} says that it cannot be read`)
      t.match(await logs.json(), { error: { code: 'service_unavailable' } })
    }
    await isToldDown(t, service, { name: 'clickhouse', title: 'ClickHouse' })
    await more(ENOUGH)
    t.same(refusals(load.seen), [], 'no call was refused for it')
    const during = load.seen.slice(before).filter(isAnswered)
    await service.engines.startEngine('clickhouse')
    await more(ENOUGH)
    service.engines.killEngine('clickhouse')
    await more(ENOUGH)
    await finish(t)
    const [someCall] = during
    const rows = callers.map(({ key }) => service.get(key, `/v1/logs?ref=${someCall?.requestId}`))
    const found = await Promise.all(
      rows.map(async (row) => ((await (await row).json()) as { data: [] }).data),
    )
    t.equal(found.flat().length, 1, 'a call that was made meanwhile is in its log')
  })
