import { setTimeout as delay } from 'node:timers/promises'
import type { Endpoint } from '../load/request.ts'
import type { StreamsProgress } from '../load/streams.ts'
import { type RunningSubject, TRANSLATED } from '../subjects/subject.ts'
import type { Pace } from '../upstream/replies.ts'
import {
  type Bench,
  type CpuUse,
  checkAnswer,
  gatewayResidentBytes,
  type Metrics,
  SAMPLES_PER_ROUND,
  type Size,
  startCpuCount,
  takeSamples,
  type Workload,
} from './workload.ts'

/**
 * Workloads of many streams open at once. After all are open, a window is measured in which none opens or
 * ends. Then all must end properly.
 */

const PACED_PER_SECOND = 10
const HELD_PER_SECOND = 1
/** For gateways that hundreds of paced streams overload. */
const FEW_STREAMS = 20
const PACED_OPENS_PER_SECOND = 500
const HELD_OPENS_PER_SECOND = 1_500
/** A stream must last longer than the opening of all others and the window, with time to spare. */
const PACED_SPARE_SECONDS = 2
const HELD_SPARE_SECONDS = 3
const STREAMS_LIMIT_MS = 90_000
const SETTLE_MS = 300
const HELD_WARM_UP_CALLS = 2_000

/** Returns streams long enough for the window. */
export const pacedPace = ({ paced }: Size): Pace =>
  paceFor(
    PACED_PER_SECOND,
    paced.streams / PACED_OPENS_PER_SECOND + paced.windowSeconds + PACED_SPARE_SECONDS,
  )

export const heldPace = ({ held }: Size): Pace =>
  paceFor(HELD_PER_SECOND, held.streams / HELD_OPENS_PER_SECOND + held.windowSeconds + HELD_SPARE_SECONDS)

const paceFor = (perSecond: number, seconds: number): Pace => ({
  chunks: Math.ceil(perSecond * seconds),
  perSecond,
})

interface Window extends CpuUse {
  seconds: number
  chunks: number
}

/** Opens the streams of a profile, calls `sample`, and waits until all have ended. */
const whileOpen = async <T>(
  profile: 'paced' | 'held',
  endpoint: Endpoint,
  bench: Bench,
  sample: () => Promise<T>,
  count = bench.size[profile].streams,
): Promise<T> => {
  try {
    await bench.load.openStreams({
      endpoint,
      profile,
      expected: { chunks: bench.paces[profile].chunks, bodyBytes: null },
      count,
      opensPerSecond: profile === 'paced' ? PACED_OPENS_PER_SECOND : HELD_OPENS_PER_SECOND,
      limitMs: STREAMS_LIMIT_MS,
    })
    await delay(SETTLE_MS)
    const found = await sample()
    await bench.load.awaitStreams()
    return found
  } finally {
    await bench.load.abandonStreams()
  }
}

const watch = async (running: RunningSubject, bench: Bench, seconds: number): Promise<Window> => {
  const first: StreamsProgress = await bench.load.progress()
  const startedAt = performance.now()
  const stop = startCpuCount(running)
  await delay(seconds * 1000)
  const use = stop()
  const last = await bench.load.progress()
  if (last.ended > 0)
    throw new Error(`${last.ended} streams ended before all were open: opening took too long`)
  return { ...use, seconds: (performance.now() - startedAt) / 1000, chunks: last.chunks - first.chunks }
}

/** The upstream sets the pace, so a stream that is too slow was delayed by the subject. */
const MIN_SHARE_OF_PACE = 0.9

const checkPace = ({ chunks, seconds }: Window, streams: number, perSecond: number): void => {
  const due = streams * perSecond * seconds
  if (chunks < due * MIN_SHARE_OF_PACE) throw new Error(`${chunks} of ${Math.round(due)} due chunks arrived`)
}

const paced = (
  name: string,
  title: string,
  endpointFor: (running: RunningSubject) => Endpoint | null,
  few?: number,
): Workload => ({
  name,
  title,
  alone: false,
  enginesElsewhere: true,
  once: false,
  takes: (subject, running) => subject.name !== 'direct' && endpointFor(running) !== null,
  prepare: async (_subject, running, bench) => {
    await checkAnswer(endpointFor(running)!, 'burst', bench)
  },
  measure: (_subject, running, bench) => {
    const { windowSeconds } = bench.size.paced
    const streams = few ?? bench.size.paced.streams
    const sample = async (): Promise<Metrics> => {
      const window = await watch(running, bench, windowSeconds / SAMPLES_PER_ROUND)
      checkPace(window, streams, PACED_PER_SECOND)
      return {
        cpuPerChunkUs: window.gatewayUs / window.chunks,
        chunksPerSecond: window.chunks / window.seconds,
        busyPercent: window.gatewayUs / window.seconds / 10_000,
      }
    }
    const samples = () => takeSamples(bench, SAMPLES_PER_ROUND, sample)
    return whileOpen('paced', endpointFor(running)!, bench, samples, streams)
  },
})

const memory: Workload = {
  name: 'memory',
  title: 'thousands of open streams in one process',
  alone: true,
  enginesElsewhere: false,
  once: true,
  takes: (subject) => subject.holdsManyStreams,
  prepare: async (_subject, running, bench) => {
    await checkAnswer(running.plain, 'burst', bench)
    await bench.load.calls({
      endpoint: running.plain,
      profile: 'small',
      expected: { chunks: null, bodyBytes: null },
      connections: 64,
      count: HELD_WARM_UP_CALLS,
      perSecond: null,
      limitMs: STREAMS_LIMIT_MS,
    })
  },
  measure: (_subject, running, bench) => {
    const { streams, windowSeconds } = bench.size.held
    const before = gatewayResidentBytes(running)
    return whileOpen('held', running.plain, bench, async (): Promise<Metrics[]> => {
      const window = await watch(running, bench, windowSeconds)
      const held = gatewayResidentBytes(running)
      checkPace(window, streams, HELD_PER_SECOND)
      return [
        {
          streams,
          kbPerStream: (held - before) / streams / 1000,
          residentMb: held / 1e6,
          busyPercent: window.gatewayUs / window.seconds / 10_000,
        },
      ]
    })
  },
}

export const streamWorkloads: Workload[] = [
  paced('paced', 'streams at 10 chunks a second', ({ plain }) => plain),
  paced('paced-few', `${FEW_STREAMS} streams at 10 chunks a second`, ({ plain }) => plain, FEW_STREAMS),
  paced('paced-tls', 'paced streams, TLS to the upstream', ({ tls }) => tls),
  ...TRANSLATED.map((protocol) =>
    paced(
      `paced-${protocol}`,
      `paced streams, translated from ${protocol}`,
      ({ translated }) => translated?.[protocol] ?? null,
    ),
  ),
]
export const memoryWorkload: Workload = memory
