/** What the calls of a chaotic run shall be, drawn from one seed: the same seed, the same plan. */
import type { Random } from '../../simulation/random.ts'
import { testConfig } from '../../support/service.ts'

/** Set to run the plan that failed. */
const SEED_VARIABLE = 'TOLLGATE_SEED'
/** Set to run each of these tests so many times, with other seeds. */
const ROUNDS_VARIABLE = 'TOLLGATE_CHAOS_ROUNDS'
const MAX_SEED = 2 ** 31
const ROUND_BOUND_MS = 900_000

const rounds = Number(process.env[ROUNDS_VARIABLE] ?? 1)
/** For `t.setTimeout` of a whole file. */
export const TIMEOUT_MS = rounds * ROUND_BOUND_MS

/** The seeds to run with: one, unless more rounds are asked for. */
export function seeds(): number[] {
  const given = process.env[SEED_VARIABLE]
  const first = given === undefined ? Math.floor(Math.random() * MAX_SEED) : Number(given)
  return Array.from({ length: rounds }, (_, round) => (first + round) % MAX_SEED)
}

/** Says how to have the same plan again. */
export const seedNote = (seed: number): string => `${SEED_VARIABLE}=${seed}`

export interface PlannedCall {
  /** Index of the key that calls. */
  readonly key: number
  /** After the beginning of the run. */
  readonly delayMs: number
  readonly body: object
  /** The client leaves so long after it called, whatever has come; null stays to the end. */
  readonly leavesAfterMs: number | null
}

export interface PlanShape {
  readonly calls: number
  readonly keys: number
  /** All calls begin within this time. */
  readonly rampMs: number
  /** How long a stream that nothing disturbs is paced to last. */
  readonly streamMs: readonly [from: number, to: number]
}

/** Prices of 1 credit a prompt token and 2 an output token, where nothing else is said. */
export const CHAOS_CONFIG = testConfig({
  steady: {},
  cheap: { input: '31.1', output: '0.7' },
  free: { input: '0', output: '0' },
})
const MODELS = ['steady', 'steady', 'steady', 'cheap', 'free'] as const

type Directives = Readonly<Record<string, string | number>>

export function planOf(random: Random, shape: PlanShape): PlannedCall[] {
  return Array.from({ length: shape.calls }, () => plannedCall(random, shape))
}

export function plannedCall(random: Random, { keys, rampMs, streamMs }: PlanShape): PlannedCall {
  const lastsMs = random.int(...streamMs)
  const tokens = random.int(1, 48)
  const disturbed = disturbance(random)
  // Somebody has to end what never ends.
  const leaves = isHanging(disturbed) || random.chance(0.3)
  const paced = { tokens, tps: Math.max(1, Math.round((tokens * 1000) / lastsMs)) }
  return {
    key: random.int(0, keys - 1),
    delayMs: random.int(0, rampMs),
    body: {
      model: random.pick(MODELS),
      stream: random.chance(0.9),
      max_tokens: 64,
      messages: [{ role: 'user', content: 'x'.repeat(random.int(1, 400)) }],
      simulate: { seed: random.int(0, 1_000_000), ...paced, ...disturbed },
      ...(random.chance(0.5) ? { stream_options: { include_usage: true } } : {}),
    },
    leavesAfterMs: leaves ? random.int(0, streamMs[1]) : null,
  }
}

/** What the upstream does besides answering; nothing for most calls. */
function disturbance(random: Random): Directives {
  const kind = random.int(1, 20)
  switch (kind) {
    case 1:
    case 2:
    case 3:
      return { fault: `reset:${random.int(0, 8000)}` }
    case 4:
      return { fault: `cut:${random.int(0, 8000)}` }
    case 5:
      return { fault: 'reset:head' }
    case 6:
      return { fault: `status:${random.pick([400, 429, 500, 503])}` }
    case 7:
      return { fault: `truncate:${random.int(1, 8000)}` }
    case 8:
      return { usage: random.pick(['none', 'zero', 'early', 'with_finish']) }
    case 9:
      return { ttft: random.int(1, 1000) }
    case 10:
      return { fault: `hang:${random.int(0, 2000)}` }
    default:
      return {}
  }
}

const isHanging = ({ fault }: Directives): boolean => String(fault).startsWith('hang')
