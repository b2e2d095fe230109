/**
 * Failures that gateways are known for: "PostgreSQL down". It holds when known keys go on being served for the time
 * the operator allows, then get 503, and nothing is lost.
 */
import t from 'tap'
import { eventually, type TestService } from '../../support/service.ts'
import { isToldDown, refusals, underLoad } from './outage.ts'
import { CHAOS_CONFIG, seedNote, seeds } from './plan.ts'

const ENOUGH = 80
const SHORT_GRACE = 'database: { grace_seconds: 2 }\n'

const balance = async (service: TestService, key: string) => {
  const response = await service.get(key, '/v1/key/balance')
  const { error } = (await response.json()) as { error?: { code: string } }
  return { status: response.status, code: error?.code }
}

t.setTimeout(100_000)
for (const seed of seeds()) {
  await t.test(`an outage within the grace time, ${seedNote(seed)}`, async (t) => {
    const { service, load, more, finish } = await underLoad(t, seed)
    const unknown = await service.newKey('1000')
    await more(ENOUGH)
    await service.engines.stopEngine('postgres')
    await more(ENOUGH)
    t.match(await balance(service, unknown.key), { status: 503, code: 'service_unavailable' })
    await isToldDown(t, service, { name: 'postgres', title: 'PostgreSQL' })
    await more(ENOUGH)
    t.same(refusals(load.seen), [], 'no known key was refused')
    await service.engines.startEngine('postgres')
    await eventually('the unknown key is known', async () =>
      (await balance(service, unknown.key)).status === 200 ? true : undefined,
    )
    await more(ENOUGH)
    service.engines.killEngine('postgres')
    await more(ENOUGH)
    t.same(refusals(load.seen), [], 'nor when it crashed')
    await finish(t)
  })

  await t.test(`an outage that outlasts the grace time, ${seedNote(seed)}`, async (t) => {
    const { service, callers, more, finish } = await underLoad(t, seed, {
      config: SHORT_GRACE + CHAOS_CONFIG,
    })
    const known = callers[0]?.key ?? ''
    await more(ENOUGH)
    await service.engines.stopEngine('postgres')
    await more(1)
    t.match(await balance(service, known), { status: 200 }, 'known keys are served at first')
    await more(ENOUGH, ({ code }) => code === 'service_unavailable')
    t.match(await balance(service, known), { status: 503, code: 'service_unavailable' })
    await service.engines.startEngine('postgres')
    await more(ENOUGH)
    await finish(t)
  })
}
