/** Which faults a run has, drawn from its seed: the same seed, the same faults. */
import type { Random } from '../../simulation/random.ts'
import type { Interruption } from '../installation/relay.ts'

export const FAULT_INTERVAL_MS = 3_000
const LASTS_MS = [500, 8_000] as const

export type Act = 'kill' | 'pause' | Interruption

/** What each part may suffer; one that stands here twice is struck twice as often. */
const CAN_ALL: readonly Act[] = ['kill', 'pause', 'hang', 'cut']
const CAN_SIGNALS: readonly Act[] = ['kill', 'pause']
const CHOICES: readonly (readonly [victim: string, acts: readonly Act[]])[] = [
  ...['gateway-1', 'gateway-2', 'gateway-3', 'workers'].map((name) => [name, CAN_ALL] as const),
  ...['gateway-1', 'gateway-2', 'gateway-3'].map((name) => [`${name} gateway`, CAN_SIGNALS] as const),
  ...['settler', 'tasks'].map((role) => [`workers ${role}`, CAN_SIGNALS] as const),
  ...['n1', 'n2', 'n3', 'postgres', 'pgbouncer', 'clickhouse', 'bucket'].map(
    (name) => [name, CAN_ALL] as const,
  ),
  ['standby', CAN_SIGNALS],
  ['provider', ['pause', 'hang', 'cut']],
]

export interface PlannedFault {
  /** After the beginning of the run. */
  readonly atMs: number
  readonly victim: string
  readonly act: Act
  /** Until it is started again, goes on or is connected again. */
  readonly lastsMs: number
}

export function plannedFaults(random: Random, runMs: number): PlannedFault[] {
  const count = Math.floor(runMs / FAULT_INTERVAL_MS)
  return Array.from({ length: count }, (_, at) => {
    const [victim, acts] = random.pick(CHOICES)
    return {
      atMs: (at + 1) * FAULT_INTERVAL_MS,
      victim,
      act: random.pick(acts),
      lastsMs: random.int(...LASTS_MS),
    }
  })
}
