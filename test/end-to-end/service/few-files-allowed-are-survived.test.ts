/**
 * More clients at once than a service may open files for: what it takes it answers, what it cannot take fails clearly,
 * nothing dies, and all is well again when the crowd has gone.
 */
import t from 'tap'
import { Random } from '../../simulation/random.ts'
import { startService } from '../../support/service.ts'
import { audit, type Caller } from '../chaos/audit.ts'
import { startLoad } from '../chaos/load.ts'
import { CHAOS_CONFIG, planOf, seedNote, seeds, TIMEOUT_MS } from '../chaos/plan.ts'
import { childrenOf } from '../chaos/processes.ts'

const MAX_OPEN_FILES = 120
const CROWD = { calls: 300, keys: 4, rampMs: 0, streamMs: [500, 1_500] } as const
const AFTERWARDS = { calls: 20, keys: 4, rampMs: 1_000, streamMs: [1, 50] } as const

t.setTimeout(TIMEOUT_MS)
for (const seed of seeds())
  await t.test(seedNote(seed), async (t) => {
    const random = new Random(seed)
    const service = await startService(t, { config: CHAOS_CONFIG, maxOpenFiles: MAX_OPEN_FILES })
    const callers: Caller[] = []
    for (let i = 0; i < CROWD.keys; i++) callers.push(await service.newKey('1000000'))
    const keys = callers.map(({ key }) => key)
    const processes = () => [...childrenOf(service.pid(), 'gateway'), ...childrenOf(service.pid(), 'settler')]
    const before = processes()
    const crowd = startLoad(service, keys, planOf(random, CROWD))
    await crowd.done
    t.ok(
      crowd.seen.some(({ status }) => status === 200),
      'some of the crowd are answered',
    )
    const refused = crowd.seen.filter(({ status }) => status !== null && status >= 500)
    t.ok(
      refused.some(({ code }) => code === 'service_unavailable'),
      'others get an error that blames the service',
    )
    const unclear = refused.filter(
      ({ code, end }) => code === null || code === 'internal_error' || end !== 'complete',
    )
    t.same(unclear, [], 'with a reason')
    const calm = startLoad(service, keys, planOf(random, AFTERWARDS))
    await calm.done
    t.ok(calm.seen.filter(({ status }) => status === 200).length > 5, 'calls work again')
    t.same(processes(), before, 'nothing died')
    await audit(t, service, callers, [...crowd.seen, ...calm.seen])
  })
