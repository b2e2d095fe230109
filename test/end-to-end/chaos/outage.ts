/** An engine goes away under load and comes back; what all such tests have in common. */
import type { Test } from 'tap'
import { Random } from '../../simulation/random.ts'
import {
  eventually,
  type ServiceOptions,
  startService,
  type TestService,
  until,
} from '../../support/service.ts'
import { audit, type Caller } from './audit.ts'
import { gauge } from './gauge.ts'
import { keepCalling, type SeenCall, type SteadyLoad } from './load.ts'
import { CHAOS_CONFIG } from './plan.ts'

const SHAPE = { calls: 10_000, keys: 8, rampMs: 40, streamMs: [10, 400], atOnce: 24 } as const

export interface UnderLoad {
  readonly service: TestService
  readonly callers: readonly Caller[]
  readonly load: SteadyLoad
  /** Resolves once so many more calls have been answered as asked, counted from now on. */
  more(count: number, isMeant?: (call: SeenCall) => boolean): Promise<void>
  /** Ends the load and audits everything. */
  finish(t: Test): Promise<void>
}

export const isAnswered = ({ status }: SeenCall): boolean => status === 200

/** A service that is called without pause. */
export async function underLoad(t: Test, seed: number, options: ServiceOptions = {}): Promise<UnderLoad> {
  const service = await startService(t, { config: CHAOS_CONFIG, ...options })
  const callers: Caller[] = []
  for (let i = 0; i < SHAPE.keys; i++) callers.push(await service.newKey('1000000'))
  const keys = callers.map(({ key }) => key)
  const load = keepCalling(service, keys, new Random(seed), SHAPE)
  // A run that fails leaves no client behind that goes on calling.
  t.teardown(() => load.stop())
  const more = async (count: number, isMeant = isAnswered) => {
    const before = load.seen.length
    const enough = () => load.seen.slice(before).filter(isMeant).length >= count
    await until(`${count} more calls of the kind`, enough)
  }
  return {
    service,
    callers,
    load,
    more,
    async finish(t) {
      load.stop()
      await load.done
      await audit(t, service, callers, load.seen)
    },
  }
}

/** The status that a load balancer gets. */
export const readinessForCalls = async (service: TestService): Promise<number> =>
  (await fetch(`${service.baseUrl}/readyz?for=calls`)).status

/** Sees that readiness and metrics tell of an engine that is away. */
export async function isToldDown(
  t: Test,
  service: TestService,
  engine: { readonly name: string; readonly title: string },
): Promise<void> {
  const reason = await eventually(`${engine.name} is missed`, async () => {
    const response = await fetch(`${service.baseUrl}/readyz`)
    return response.status === 503 ? response.text() : undefined
  })
  t.match(reason, engine.title, 'readiness names it')
  t.equal(await readinessForCalls(service), 200, 'and that for calls stays')
  t.equal(await gauge(service, `tollgate_engine_up{engine="${engine.name}"}`), 0)
}

/** Calls that the service itself failed, in place of the upstream. */
export const refusals = (seen: readonly SeenCall[]): SeenCall[] =>
  seen.filter(({ code }) => code === 'service_unavailable' || code === 'internal_error')
