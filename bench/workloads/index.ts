import { callWorkloads } from './calls.ts'
import { settledWorkload } from './settled.ts'
import { memoryWorkload, streamWorkloads } from './streams.ts'
import type { Workload } from './workload.ts'

/** All workloads in the order of their running; those that start every subject anew come last. */
export const workloads: Workload[] = [...callWorkloads, ...streamWorkloads, settledWorkload, memoryWorkload]
