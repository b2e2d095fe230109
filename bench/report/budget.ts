import { medianOf, type Results, ratioTo } from './results.ts'

/** One aim and how far it is met. */
export interface Aim {
  title: string
  /** The figure must not be above this. */
  limit: number
  unit: string
  /** Null where this run did not measure it. */
  value: number | null
}

const SUBJECT = 'tollgate'
const YARDSTICK = 'nginx'

/** The aims of the gateway with everything on, in one run with its yardstick. */
export const budgetOf = (results: Results): Aim[] => {
  const ratio = (workload: string, metric: string): number | null =>
    ratioTo(results, workload, SUBJECT, YARDSTICK, metric)
  const value = (workload: string, metric: string): number | null =>
    medianOf(results, workload, SUBJECT, metric)
  return [
    {
      title: 'gateway process, small call',
      limit: 2,
      unit: 'x nginx',
      value: ratio('small', 'cpuPerCallUs'),
    },
    {
      title: 'gateway process, small call, all at one rate',
      limit: 2,
      unit: 'x nginx',
      value: ratio('small-even', 'cpuPerCallUs'),
    },
    {
      title: 'gateway process, paced chunk',
      limit: 1,
      unit: 'x nginx',
      value: ratio('paced', 'cpuPerChunkUs'),
    },
    {
      title: 'gateway process, small call, TLS to the upstream',
      limit: 2,
      unit: 'x nginx',
      value: ratio('small-tls', 'cpuPerCallUs'),
    },
    {
      title: 'gateway process, paced chunk, TLS to the upstream',
      limit: 1,
      unit: 'x nginx',
      value: ratio('paced-tls', 'cpuPerChunkUs'),
    },
    {
      title: 'all processes and engines, settled call',
      limit: 150,
      unit: 'µs',
      value: value('settled', 'cpuPerCallUs'),
    },
    { title: 'memory of an open stream', limit: 30, unit: 'KB', value: value('memory', 'kbPerStream') },
  ]
}

export const isMet = ({ value, limit }: Aim): boolean | null => (value === null ? null : value <= limit)
