import { callWorkloads } from './calls.ts'
import { loggedWorkload } from './logged.ts'
import { settledWorkload } from './settled.ts'
import { memoryWorkload, streamWorkloads } from './streams.ts'
import type { Workload } from './workload.ts'

/** All workloads in order. Those that restart every subject come last. */
export const workloads: Workload[] = [
  ...callWorkloads,
  ...streamWorkloads,
  settledWorkload,
  loggedWorkload,
  memoryWorkload,
]
