import { setTimeout as delay } from 'node:timers/promises'
import { type Settling, WARM_UP } from '../subjects/subject.ts'
import { type Bench, checkAnswer, startCpuCount, type Workload } from './workload.ts'

/**
 * The whole cost of a call: gateway, settler, PostgreSQL, NATS and ClickHouse, from the first call until the wallet has
 * paid the last one and its row is in the call log.
 */

const CONNECTIONS = 64
const CALLS = 20_000
const CALLS_LIMIT_MS = 60_000
const SETTLE_LIMIT_MS = 30_000
const SETTLE_POLL_MS = 50
/** A row is in the call log at most two seconds after its call; that work counts. */
const CALL_LOG_MS = 2_000
/** Counts come from a division of credits, and are exact to much less than one call. */
const PARTS_OF_A_CALL = 1_000

const wholeCalls = async ({ settledCalls }: Settling): Promise<number> => {
  const calls = await settledCalls()
  if (Math.abs(calls - Math.round(calls)) > 1 / PARTS_OF_A_CALL)
    throw new Error(`the wallet paid for ${calls} calls, which is not an integer`)
  return Math.round(calls)
}

/** Makes calls and waits until the wallet has paid for exactly this many. Returns the seconds from the first call to then. */
const callAndSettle = async (settling: Settling, bench: Bench, count: number): Promise<number> => {
  const before = await wholeCalls(settling)
  const startedAt = performance.now()
  await bench.load.calls({
    endpoint: settling.endpoint,
    profile: 'small',
    expected: { chunks: null, bodyBytes: null },
    connections: CONNECTIONS,
    count,
    perSecond: null,
    limitMs: CALLS_LIMIT_MS,
  })
  const deadline = performance.now() + SETTLE_LIMIT_MS
  for (;;) {
    const settled = (await wholeCalls(settling)) - before
    const now = performance.now()
    if (settled === count) return (now - startedAt) / 1000
    if (settled > count || now > deadline) throw new Error(`${settled} of ${count} calls were settled`)
    await delay(SETTLE_POLL_MS)
  }
}

export const settledWorkload: Workload = {
  name: 'settled',
  title: 'small calls, until all are settled',
  alone: false,
  enginesElsewhere: false,
  once: false,
  takes: (_subject, running) => running.settling !== null,
  prepare: async (_subject, running, bench) => {
    const settling = running.settling!
    const before = await wholeCalls(settling)
    await checkAnswer(settling.endpoint, 'small', bench)
    const deadline = performance.now() + SETTLE_LIMIT_MS
    while ((await wholeCalls(settling)) !== before + 1) {
      if (performance.now() > deadline) throw new Error('the first call was not settled')
      await delay(SETTLE_POLL_MS)
    }
    await callAndSettle(settling, bench, Math.round(WARM_UP.calls * bench.size.effort))
  },
  measure: async (_subject, running, bench) => {
    const count = Math.round(CALLS * bench.size.effort)
    const stop = startCpuCount(running)
    const seconds = await callAndSettle(running.settling!, bench, count)
    await delay(CALL_LOG_MS)
    const { allUs, byRole } = stop()
    const perRole = Object.entries(byRole).map(([role, us]) => [`${role}PerCallUs`, us / count])
    return [
      { cpuPerCallUs: allUs / count, settledPerSecond: count / seconds, ...Object.fromEntries(perRole) },
    ]
  },
}
