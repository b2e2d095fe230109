/**
 * While PostgreSQL is down, known keys are served for the time that the operator allows, then get 503. Nothing is lost.
 * See docs/failure-modes.md, "Engines", row 48.
 */
import { writeFile } from 'node:fs/promises'
import t from 'tap'
import { eventually, type TestService } from '../../support/service.ts'
import type { SeenCall } from './load.ts'
import { isToldDown, refusals, underLoad } from './outage.ts'
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
    const unknown = await service.newKey('1000')
    const isServed = async () => ((await balance(service, unknown.key)).status === 200 ? true : undefined)

    await t.test('an outage within the grace time', async (t) => {
      await more(ENOUGH)
      await engines.stopEngine('postgres')
      await more(ENOUGH)
      t.match(await balance(service, unknown.key), { status: 503, code: 'service_unavailable' })
      await isToldDown(t, service, { name: 'postgres', title: 'PostgreSQL' })
      await more(ENOUGH)
      t.same(refusals(load.seen), [], 'no known key was refused')
      await engines.startEngine('postgres')
      await eventually('the unknown key is known', isServed)
      await more(ENOUGH)
      engines.killEngine('postgres')
      await more(ENOUGH)
      t.same(refusals(load.seen), [], 'nor when it crashed')
    })

    await t.test('an outage that outlasts it', async (t) => {
      await writeFile(service.configPath, SHORT_GRACE + CHAOS_CONFIG)
      const isTakenUp = () => (service.output().includes('Configuration applied') ? true : undefined)
      await eventually('the short grace time is in force', isTakenUp)
      const known = callers[0]?.key ?? ''
      await eventually('PostgreSQL answers again', async () =>
        (await fetch(`${service.baseUrl}/readyz`)).status === 200 ? true : undefined,
      )
      await engines.stopEngine('postgres')
      await more(1)
      t.match(await balance(service, known), { status: 200 }, 'known keys are served at first')
      const isRefused = ({ code }: SeenCall) => code === 'service_unavailable'
      await more(ENOUGH, isRefused)
      t.match(await balance(service, known), { status: 503, code: 'service_unavailable' })
      await engines.startEngine('postgres')
      await more(ENOUGH)
    })
    await finish(t)
  })
