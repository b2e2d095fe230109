import type { CallsPlan, CallsResult } from '../load/calls.ts'
import type { Endpoint } from '../load/request.ts'
import { type RunningSubject, TRANSLATED, WARM_UP } from '../subjects/subject.ts'
import { isWhole, type Profile, type WholeProfile } from '../upstream/replies.ts'
import {
  type Bench,
  checkAnswer,
  gatewayResidentBytes,
  hasNoProcess,
  type Metrics,
  SAMPLES_PER_ROUND,
  splitChunks,
  startCpuCount,
  takeSamples,
  untilIdle,
  type Workload,
} from './workload.ts'

/** Workloads of many short calls: the first two kinds measure CPU, the last two latency. */

const BUSY_CONNECTIONS = 64
const BURST_CONNECTIONS = 8
/** Low enough that the slowest subject is idle half of the time, so that latency does not include queueing. */
const STEADY_CALLS_PER_SECOND = 400
const STEADY_STREAMS_PER_SECOND = 100
/** For gateways that the rates above overload. */
const CALM_CALLS_PER_SECOND = 50
const CALM_STREAMS_PER_SECOND = 40
/** All calls that one turn of the event loop handles share its cost, so costs are also compared at one rate. */
const EVEN_CALLS_PER_SECOND = 1_000
const CALLS_LIMIT_MS = 60_000

interface Load {
  profile: Profile
  endpoint: Endpoint
  connections: number
  count: number
  perSecond: number | null
}

/** A whole response has one length per subject, taken from the one that was checked in full. */
const wholeBodyBytes = new WeakMap<RunningSubject, number>()

/** Below this share of a steady rate the subject is overloaded, and its latency is that of a queue. */
const MIN_SHARE_OF_RATE = 0.8

const run = async (running: RunningSubject, bench: Bench, load: Load): Promise<CallsResult> => {
  const { profile, endpoint, perSecond, count } = load
  const isKnown = isWhole(profile) && endpoint.rewrites !== true
  const bodyBytes = isKnown ? (wholeBodyBytes.get(running) ?? null) : null
  const plan: CallsPlan = {
    ...load,
    expected: { chunks: splitChunks(profile, bench), bodyBytes },
    limitMs: CALLS_LIMIT_MS,
  }
  const result = await bench.load.calls(plan)
  const rate = count / result.seconds
  if (perSecond !== null && rate < MIN_SHARE_OF_RATE * perSecond)
    throw new Error(`overloaded: ${Math.round(rate)} of ${perSecond} calls a second`)
  return result
}

const check = async (
  running: RunningSubject,
  bench: Bench,
  profile: Profile,
  endpoint: Endpoint,
): Promise<void> => {
  const bodyBytes = await checkAnswer(endpoint, profile, bench)
  if (isWhole(profile)) wholeBodyBytes.set(running, bodyBytes)
}

const scaled = (count: number, bench: Bench): number => Math.max(1, Math.round(count * bench.size.effort))

/** A call of 100 KB takes about ten times as long as a small one. */
const LONG_CALLS_SHARE = 0.15
/** Short, because the host may move the cores every few seconds. */
export const SAMPLE_SECONDS = 0.6

/** How many calls or streams of the workload that was prepared last fill a sample. */
const sampleCounts = new WeakMap<RunningSubject, number>()

/** A slow subject has compiled what it runs after fewer calls. */
const WARM_UP_LIMIT_MS = 10_000
const FIRST_CALLS = 100

/** Makes the calls in growing parts, as many as there is time for. Those of a sample follow from the rate of the last part. */
const warmUp = async (running: RunningSubject, bench: Bench, load: Load): Promise<void> => {
  const deadline = performance.now() + WARM_UP_LIMIT_MS
  let rate = 0
  for (let done = 0, part = FIRST_CALLS; done < load.count && performance.now() < deadline; part *= 2) {
    const count = Math.min(part, load.count - done)
    rate = count / (await run(running, bench, { ...load, count })).seconds
    done += count
  }
  sampleCounts.set(running, scaled(rate * SAMPLE_SECONDS, bench))
}

interface WholeCalls {
  profile?: WholeProfile
  /** Returns null for a subject without such an endpoint. Default: the plain one. */
  find?: (running: RunningSubject) => Endpoint | null
  /** Null makes calls as fast as possible. */
  perSecond?: number | null
}

const whole = (
  name: string,
  title: string,
  { profile = 'small', find = ({ plain }) => plain, perSecond = null }: WholeCalls = {},
): Workload => {
  const share = profile === 'long' ? LONG_CALLS_SHARE : 1
  const load = (running: RunningSubject, count: number, perSecond: number | null): Load => ({
    profile,
    endpoint: find(running)!,
    connections: BUSY_CONNECTIONS,
    count,
    perSecond,
  })
  return {
    name,
    title,
    alone: false,
    enginesElsewhere: true,
    once: false,
    takes: (_subject, running) => find(running) !== null,
    prepare: async (_subject, running, bench) => {
      await check(running, bench, profile, find(running)!)
      await warmUp(running, bench, load(running, scaled(share * WARM_UP.calls, bench), null))
    },
    measure: (_subject, running, bench) => {
      const calls =
        perSecond === null
          ? sampleCounts.get(running)!
          : Math.round((perSecond * bench.size.steadySeconds) / SAMPLES_PER_ROUND)
      return takeSamples(bench, SAMPLES_PER_ROUND, async (): Promise<Metrics> => {
        const stop = startCpuCount(running)
        const { seconds } = await run(running, bench, load(running, calls, perSecond))
        const callsPerSecond = calls / seconds
        if (hasNoProcess(running)) return { callsPerSecond }
        const busyPercent = stop().gatewayUs / seconds / 10_000
        await untilIdle(running) // Deferred work counts too.
        return {
          callsPerSecond,
          cpuPerCallUs: stop().gatewayUs / calls,
          busyPercent,
          residentMb: gatewayResidentBytes(running) / 1e6,
        }
      })
    },
  }
}

const burst: Workload = {
  name: 'burst',
  title: 'streams of 100 chunks at once',
  alone: false,
  enginesElsewhere: true,
  once: false,
  takes: () => true,
  prepare: async (_subject, running, bench) => {
    await check(running, bench, 'burst', running.plain)
    await warmUp(running, bench, burstLoad(running, scaled(WARM_UP.streams, bench)))
  },
  measure: (_subject, running, bench) => {
    const streams = sampleCounts.get(running)!
    const chunks = streams * bench.paces.burst.chunks
    return takeSamples(bench, SAMPLES_PER_ROUND, async (): Promise<Metrics> => {
      const stop = startCpuCount(running)
      const { seconds } = await run(running, bench, burstLoad(running, streams))
      const chunksPerSecond = chunks / seconds
      if (hasNoProcess(running)) return { chunksPerSecond }
      await untilIdle(running)
      return { chunksPerSecond, cpuPerChunkUs: stop().gatewayUs / chunks }
    })
  },
}

const burstLoad = ({ plain }: RunningSubject, count: number): Load => ({
  profile: 'burst',
  endpoint: plain,
  connections: BURST_CONNECTIONS,
  count,
  perSecond: null,
})

const steady = (name: string, title: string, profile: 'small' | 'brief', perSecond: number): Workload => {
  const load = ({ plain }: RunningSubject, count: number): Load => ({
    profile,
    endpoint: plain,
    connections: BUSY_CONNECTIONS,
    count,
    perSecond,
  })
  return {
    name,
    title,
    alone: false,
    enginesElsewhere: true,
    once: false,
    takes: () => true,
    // As many calls as before a measurement of CPU: until a program has compiled what it runs, its slowest calls are later.
    prepare: async (_subject, running, bench) => {
      await check(running, bench, profile, running.plain)
      const count = profile === 'small' ? WARM_UP.calls : WARM_UP.streams
      await warmUp(running, bench, { ...load(running, scaled(count, bench)), perSecond: null })
    },
    measure: (_subject, running, bench) => {
      const sample = async () => {
        const result = await run(
          running,
          bench,
          load(running, Math.round(perSecond * bench.size.steadySeconds)),
        )
        return profile === 'small' ? result.latencyUs : result.firstByteUs
      }
      return takeSamples(bench, 1, async (): Promise<Metrics> => {
        const { p50, p99 } = await sample()
        return { p50Us: p50, p99Us: p99, p99AloneUs: await p99Alone(running, sample, p99) }
      })
    },
  }
}

/** Returns the 99th percentile while the subject's engines are stopped; for a subject without engines the same as before. */
const p99Alone = async (
  running: RunningSubject,
  sample: () => Promise<{ p99: number }>,
  p99: number,
): Promise<number> => {
  if (running.stopEngines === undefined) return p99
  await untilIdle(running)
  const goOn = running.stopEngines()
  try {
    return (await sample()).p99
  } finally {
    goOn()
  }
}

export const callWorkloads: Workload[] = [
  whole('small', 'small calls, 64 at a time'),
  whole('long', 'calls with a conversation of 100 KB, 64 at a time', { profile: 'long' }),
  whole('small-even', `small calls, ${EVEN_CALLS_PER_SECOND} a second`, { perSecond: EVEN_CALLS_PER_SECOND }),
  steady('latency', `small calls, ${STEADY_CALLS_PER_SECOND} a second`, 'small', STEADY_CALLS_PER_SECOND),
  steady('first-byte', `streams, ${STEADY_STREAMS_PER_SECOND} a second`, 'brief', STEADY_STREAMS_PER_SECOND),
  steady('calm', `small calls, ${CALM_CALLS_PER_SECOND} a second`, 'small', CALM_CALLS_PER_SECOND),
  steady('calm-first-byte', `streams, ${CALM_STREAMS_PER_SECOND} a second`, 'brief', CALM_STREAMS_PER_SECOND),
  burst,
  whole('small-tls', 'small calls, TLS to the upstream', { find: ({ tls }) => tls }),
  ...TRANSLATED.map((protocol) =>
    whole(`small-${protocol}`, `small calls, translated from ${protocol}`, {
      find: ({ translated }) => translated?.[protocol] ?? null,
    }),
  ),
]
