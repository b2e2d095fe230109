/**
 * One process of the service is killed in the middle of many streams, with clients that leave and upstreams that break:
 * the settler, a gateway, the supervisor; and all of them in the middle of 1,000 streams. Every call that was admitted
 * has one row, all books agree, and the service takes calls again.
 */
import t from 'tap'
import { Random } from '../../simulation/random.ts'
import { startService, type TestService, until } from '../../support/service.ts'
import { audit, type Caller } from './audit.ts'
import { type SeenCall, startLoad } from './load.ts'
import { CHAOS_CONFIG, type PlanShape, planOf, seedNote, seeds, TIMEOUT_MS } from './plan.ts'
import { childrenOf, isRunning } from './processes.ts'

const SHAPE: PlanShape = { calls: 200, keys: 20, rampMs: 500, streamMs: [200, 2_000] }
const MANY: PlanShape = { calls: 1_000, keys: 20, rampMs: 1_500, streamMs: [1_000, 6_000] }

interface Victim {
  readonly name: string
  /** What is called when it is killed; `SHAPE` where nothing else is said. */
  readonly shape?: PlanShape
  /** Kills it, and sees to it that the service runs again. */
  kill(service: TestService): Promise<void>
}

const VICTIMS: readonly Victim[] = [
  {
    name: 'the whole service',
    shape: MANY,
    async kill(service) {
      await service.kill()
      await service.start()
    },
  },
  {
    name: 'the supervisor',
    async kill(service) {
      const pid = service.pid()
      const children = [...childrenOf(pid, 'gateway'), ...childrenOf(pid, 'settler')]
      process.kill(pid, 'SIGKILL')
      // At once: the next start has to cope with what is still ending.
      await service.start()
      await until('its children have ended', () => !children.some(isRunning))
    },
  },
  { name: 'a gateway', kill: (service) => killChild(service, 'gateway') },
  // Last: nothing publishes again what it had taken, as a start does.
  { name: 'the settler', kill: (service) => killChild(service, 'settler') },
]

async function killChild(service: TestService, role: 'gateway' | 'settler'): Promise<void> {
  const [pid] = childrenOf(service.pid(), role)
  if (pid === undefined) throw new Error(`there is no ${role}`)
  process.kill(pid, 'SIGKILL')
  await until('another is in its place', () => {
    const [next] = childrenOf(service.pid(), role)
    return next !== undefined && next !== pid
  })
}

async function untilSome(ended: readonly SeenCall[], count: number): Promise<void> {
  await until(`${count} calls have ended`, () => ended.length >= count)
}

t.setTimeout(TIMEOUT_MS)
for (const seed of seeds())
  await t.test(seedNote(seed), async (t) => {
    const random = new Random(seed)
    const service = await startService(t, { config: CHAOS_CONFIG, env: { TOLLGATE_WORKERS: '2' } })
    const callers: Caller[] = []
    // Some wallets run dry on the way.
    for (let i = 0; i < SHAPE.keys; i++)
      callers.push(await service.newKey(random.chance(0.2) ? '5000' : '1000000'))
    const keys = callers.map(({ key }) => key)
    const seen: SeenCall[] = []
    for (const victim of VICTIMS) {
      const shape = victim.shape ?? SHAPE
      const load = startLoad(service, keys, planOf(random, shape))
      await untilSome(load.seen, shape.calls * (0.1 + 0.6 * random.unit()))
      t.comment(`${victim.name} is killed with ${load.begun - load.seen.length} calls open`)
      await victim.kill(service)
      await load.done
      const after = startLoad(service, keys, planOf(random, { ...SHAPE, calls: 30 }))
      await after.done
      const answered = after.seen.filter(({ status }) => status === 200)
      t.ok(answered.length > 0, `calls work after ${victim.name} was killed`)
      seen.push(...load.seen, ...after.seen)
    }
    await audit(t, service, callers, seen)
  })
