import type { Aim } from '../aim.ts'
import { inEachPlacement } from './placement.ts'
import { addedTo, BASELINE, computeMedian, type Results, ratioTo } from './results.ts'

const SUBJECT = 'tollgate'
/** The proxy that has Tollgate's server and upstream client, and none of a gateway's work. */
export const BARE = 'uws-client'

export const CALL_LIMIT = 2.1
export const CHUNK_LIMIT = 1.2
const P99_LIMIT = 2
export const SETTLED_LIMIT_US = 60
export const STREAM_LIMIT_KB = 12
const ROW_LIMIT_MS = 100

const timesBare = (results: Results, workload: string, metric: string): number | null =>
  ratioTo(results, workload, SUBJECT, BARE, metric)

/** Returns what Tollgate adds to the 99th percentile of latency, in times of what nginx adds. */
const addedP99 = (results: Results, metric: string): number | null => {
  const [own, nginx] = [SUBJECT, BASELINE].map((each) => addedTo(results, 'latency', each, 'direct', metric))
  return own == null || nginx == null || nginx <= 0 ? null : own / nginx
}

/** The aims that compare Tollgate with another subject of the same run. */
const compared = (results: Results, where: string): Aim[] => [
  {
    title: `small call, CPU of the gateway process${where}`,
    limit: CALL_LIMIT,
    unit: 'x bare parts',
    value: timesBare(results, 'small', 'cpuPerCallUs'),
  },
  {
    title: `paced chunk, CPU of the gateway process${where}`,
    limit: CHUNK_LIMIT,
    unit: 'x bare parts',
    value: timesBare(results, 'paced', 'cpuPerChunkUs'),
  },
  {
    title: `added latency at a steady rate, 99th percentile${where}`,
    limit: P99_LIMIT,
    unit: 'x nginx',
    value: addedP99(results, 'p99Us'),
  },
  {
    title: `the same with engines stopped${where}`,
    limit: P99_LIMIT,
    unit: 'x nginx',
    value: addedP99(results, 'p99AloneUs'),
  },
]

/** The aims of the gateway with everything on. */
export const listAims = (results: Results): Aim[] => [
  ...inEachPlacement(results, compared).flat(),
  {
    title: 'settled call, CPU of all processes and engines',
    limit: SETTLED_LIMIT_US,
    unit: 'µs',
    value: computeMedian(results, 'settled', SUBJECT, 'cpuPerCallUs'),
  },
  {
    title: 'own call in the call log after its end, 99th percentile',
    limit: ROW_LIMIT_MS,
    unit: 'ms',
    value: computeMedian(results, 'logged', SUBJECT, 'p99Ms'),
  },
  {
    title: 'memory of an open stream',
    limit: STREAM_LIMIT_KB,
    unit: 'KB',
    value: computeMedian(results, 'memory', SUBJECT, 'kbPerStream'),
  },
]
