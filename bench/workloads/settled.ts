import type { RunningSubject } from '../subjects/subject.ts'
import { type Bench, checkAnswer, startCpuCount, type Workload } from './workload.ts'

/**
 * What one call costs altogether: gateway, settler, PostgreSQL, NATS and ClickHouse, from the first call until
 * the last one is settled.
 */

const CONNECTIONS = 64
const WARM_UP_CALLS = 5_000
const CALLS = 20_000
const CALLS_LIMIT_MS = 60_000

const callAndSettle = async (running: RunningSubject, bench: Bench, count: number): Promise<number> => {
  const before = await running.settled!()
  await bench.load.calls({
    endpoint: running.plain,
    profile: 'small',
    expected: { chunks: null, bodyBytes: null },
    connections: CONNECTIONS,
    count,
    perSecond: null,
    limitMs: CALLS_LIMIT_MS,
  })
  const settled = (await running.settled!()) - before
  if (settled !== count) throw new Error(`${settled} calls were settled of ${count} made`)
  return settled
}

export const settledWorkload: Workload = {
  name: 'settled',
  title: 'small calls, until all are settled',
  alone: false,
  once: false,
  takes: (_subject, running) => running.settled !== null,
  prepare: async (_subject, running, bench) => {
    await checkAnswer(running.plain, 'small', bench)
    await callAndSettle(running, bench, Math.round(WARM_UP_CALLS * bench.size.effort))
  },
  measure: async (_subject, running, bench) => {
    const count = Math.round(CALLS * bench.size.effort)
    const startedAt = performance.now()
    const stop = startCpuCount(running)
    await callAndSettle(running, bench, count)
    const { allUs, byRole } = stop()
    const perRole = Object.entries(byRole).map(([role, us]) => [`${role}PerCallUs`, us / count])
    return {
      cpuPerCallUs: allUs / count,
      settledPerSecond: (count / (performance.now() - startedAt)) * 1000,
      ...Object.fromEntries(perRole),
    }
  },
}
