import { setTimeout as delay } from 'node:timers/promises'
import { proportionalBytes } from '../harness/proc.ts'
import { type Metrics, startCpuCount, type Workload } from './workload.ts'

/** What a program takes while nobody calls, with all its processes and engines: before the load, and after it. */

const SETTLE_MS = 5_000
const WINDOW_MS = 10_000

const rest = (name: string, title: string): Workload => ({
  name,
  title,
  alone: false,
  enginesElsewhere: false,
  once: true,
  takes: (_subject, running) => running.processes().gateway.length > 0,
  prepare: () => delay(SETTLE_MS),
  measure: async (_subject, running, { size }) => {
    const windowMs = WINDOW_MS * size.effort
    const stop = startCpuCount(running)
    await delay(windowMs)
    const pids = Object.values(running.processes()).flat()
    const metrics: Metrics = {
      busyPercent: stop().allUs / windowMs / 10,
      memoryMb: proportionalBytes(pids) / 1e6,
      processes: pids.length,
    }
    if (running.readyMs != null) metrics.readySeconds = running.readyMs / 1000
    if (running.installedBytes != null) metrics.installedMb = running.installedBytes / 1e6
    return [metrics]
  },
})

export const restWorkload = rest('rest', 'at rest')
export const afterwardsWorkload = rest('afterwards', 'at rest after the load')
