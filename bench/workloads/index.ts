import { callWorkloads } from './calls.ts'
import { loggedWorkload } from './logged.ts'
import { afterwardsWorkload, restWorkload } from './rest.ts'
import { settledWorkload } from './settled.ts'
import { memoryWorkload, streamWorkloads } from './streams.ts'
import type { Workload } from './workload.ts'

/** All workloads in order. Those that restart every subject come last. */
export const workloads: Workload[] = [
  restWorkload,
  ...callWorkloads,
  ...streamWorkloads,
  settledWorkload,
  loggedWorkload,
  afterwardsWorkload,
  memoryWorkload,
]
