/** Gateways that share a port, journals of gateways that are no more, and roles in services of their own. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Random } from '../../simulation/random.ts'
import { startEngines } from '../../support/engines.ts'
import { startService, type TestService, until } from '../../support/service.ts'
import { audit, type Caller } from '../chaos/audit.ts'
import { gauge } from '../chaos/gauge.ts'
import { type SeenCall, startLoad } from '../chaos/load.ts'
import { CHAOS_CONFIG, planOf, seedNote, seeds, TIMEOUT_MS } from '../chaos/plan.ts'
import { childrenOf, isRunning } from '../chaos/processes.ts'

const SHAPE = { calls: 60, keys: 2, rampMs: 200, streamMs: [10, 300] } as const

t.setTimeout(TIMEOUT_MS)
for (const seed of seeds())
  await t.test(seedNote(seed), async (t) => {
    const random = new Random(seed)
    const engines = await startEngines(t)
    const service = await startService(t, { engines, config: CHAOS_CONFIG, env: { TOLLGATE_WORKERS: '2' } })
    const callers: Caller[] = [await service.newKey('1000000'), await service.newKey('1000000')]
    const keys = callers.map(({ key }) => key)
    const seen: SeenCall[] = []
    const call = async (by: TestService) => {
      const load = startLoad(by, keys, planOf(random, SHAPE))
      await load.done
      seen.push(...load.seen)
      return load.seen
    }
    const journals = (of: TestService) => readdirSync(join(of.dataDir, 'journal')).sort()

    await t.test('two gateways share the port; one is killed and comes back', async (t) => {
      const gateways = childrenOf(service.pid(), 'gateway')
      t.equal(gateways.length, 2)
      const long = startLoad(service, keys, [
        ...planOf(random, { ...SHAPE, rampMs: 0, streamMs: [3_000, 4_000] }),
      ])
      await until('streams are open', () => long.answered >= 10)
      const [victim = 0, other = 0] = gateways
      process.kill(victim, 'SIGKILL')
      await until('it is gone', () => !isRunning(victim))
      const meanwhile = await call(service)
      const unanswered = meanwhile.filter(({ status, end }) => status === null && end !== 'left')
      t.same(unanswered, [], 'later calls are served by the other')
      t.ok(isRunning(other))
      await until('there are two again', () => {
        const now = childrenOf(service.pid(), 'gateway')
        return now.length === 2 && !now.includes(victim)
      })
      await long.done
      seen.push(...long.seen)
      t.ok(
        long.seen.some(({ end }) => end === 'cut'),
        'streams of the killed one were cut',
      )
    })

    await t.test('fewer gateways than before: what the other left is booked', async (t) => {
      await engines.stopEngine('nats')
      await call(service)
      await service.kill()
      t.same(journals(service), ['gateway-0', 'gateway-1'])
      await engines.startEngine('nats')
      await service.start({ TOLLGATE_WORKERS: '1' })
      await until('all is booked', async () => (await gauge(service, 'tollgate_journal_unbooked')) === 0)
      t.equal(await service.stop(), 0)
      t.same(journals(service), ['gateway-0'], 'and its journal is gone')
    })

    await t.test('gateway and settler in services of their own', async (t) => {
      await service.start({ TOLLGATE_ROLES: 'gateway', TOLLGATE_WORKERS: '1' })
      t.same(childrenOf(service.pid(), 'settler'), [])
      await call(service)
      t.ok((await gauge(service, 'tollgate_journal_unbooked')) > 0, 'nobody books yet')
      const settler = await startService(t, {
        engines,
        config: CHAOS_CONFIG,
        env: { TOLLGATE_ROLES: 'settler' },
      })
      t.same(childrenOf(settler.pid(), 'gateway'), [])
      await until('it says so', () => settler.output().includes('takes no calls'))
      await call(service)
      await audit(t, service, callers, seen)
      t.equal(await service.stop(), 0)
      t.equal(await settler.stop(), 0)
      t.notOk(existsSync(join(settler.dataDir, 'run.json')))
    })
  })
