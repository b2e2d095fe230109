/**
 * 2,000 streams at once with clients that leave and upstreams that break, and the whole service killed in their
 * middle: every call that was admitted has one row, and all books agree.
 */
import t from 'tap'
import { Random } from '../../simulation/random.ts'
import { startService } from '../../support/service.ts'
import { audit } from './audit.ts'
import { startLoad } from './load.ts'
import { CHAOS_CONFIG, planOf, seedNote, seeds, TIMEOUT_MS } from './plan.ts'

const STREAMS = 1_000
const SHAPE = { calls: STREAMS, keys: 20, rampMs: 1_500, streamMs: [1_000, 6_000] } as const
const AFTERWARDS = { calls: 100, keys: 20, rampMs: 300, streamMs: [10, 500] } as const

t.setTimeout(TIMEOUT_MS)
for (const seed of seeds())
  await t.test(seedNote(seed), async (t) => {
    const random = new Random(seed)
    const service = await startService(t, { config: CHAOS_CONFIG })
    const callers = []
    // Some wallets run dry on the way.
    for (let i = 0; i < SHAPE.keys; i++)
      callers.push(await service.newKey(random.chance(0.2) ? '5000' : '1000000'))
    const keys = callers.map(({ key }) => key)
    const load = startLoad(service, keys, planOf(random, SHAPE))
    const endedBefore = STREAMS * (0.2 + 0.5 * random.unit())
    while (load.seen.length < endedBefore) await new Promise((resolve) => setTimeout(resolve, 5))
    const open = load.begun - load.seen.length
    await service.kill()
    await load.done
    t.comment(`killed with ${open} streams open`)
    await service.start()
    const more = startLoad(service, keys, planOf(random, AFTERWARDS))
    await more.done
    await audit(t, service, callers, [...load.seen, ...more.seen])
  })
