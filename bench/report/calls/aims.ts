import { inEachPlace } from './placement.ts'
import { medianOf, type Results, ratioTo, YARDSTICK } from './results.ts'

/** One aim and how far it is met. */
export interface Aim {
  title: string
  /** The figure must not be above this. */
  limit: number
  unit: string
  /** Null where this run did not measure it. */
  value: number | null
}

/** An aim beside what its parts take before they do a gateway's work. */
export interface BudgetAim extends Aim {
  /** The same figure of a bare proxy of the same server and client; null where there is none. */
  floor: number | null
}

const SUBJECT = 'tollgate'
const FLOOR = 'uws-client'

/** The aims that are set against the yardstick in the same run. */
const againstYardstick = (results: Results, where: string): BudgetAim[] => {
  const aim = (title: string, limit: number, workload: string, metric: string): BudgetAim => ({
    title: `gateway process, ${title}${where}`,
    limit,
    unit: 'x nginx',
    value: ratioTo(results, workload, SUBJECT, YARDSTICK, metric),
    floor: ratioTo(results, workload, FLOOR, YARDSTICK, metric),
  })
  return [
    aim('small call', 2, 'small', 'cpuPerCallUs'),
    aim('small call, all at one rate', 2, 'small-even', 'cpuPerCallUs'),
    aim('paced chunk', 1, 'paced', 'cpuPerChunkUs'),
    aim('small call, TLS to the upstream', 2, 'small-tls', 'cpuPerCallUs'),
    aim('paced chunk, TLS to the upstream', 1, 'paced-tls', 'cpuPerChunkUs'),
  ]
}

/** The aims of the gateway with everything on. */
export const budgetOf = (results: Results): BudgetAim[] => [
  ...inEachPlace(results, againstYardstick).flat(),
  {
    title: 'all processes and engines, settled call',
    limit: 150,
    unit: 'µs',
    value: medianOf(results, 'settled', SUBJECT, 'cpuPerCallUs'),
    floor: null,
  },
  {
    title: 'memory of an open stream',
    limit: 30,
    unit: 'KB',
    value: medianOf(results, 'memory', SUBJECT, 'kbPerStream'),
    floor: medianOf(results, 'memory', FLOOR, 'kbPerStream'),
  },
]

export const isMet = ({ value, limit }: Aim): boolean | null => (value === null ? null : value <= limit)
