/** Joins what the running processes report of a channel. */
import type { ChannelReport, ProcessReport } from '../../../schemas/config/channel-report.ts'

type Breaker = ChannelReport['breaker']
type LastError = ChannelReport['last_error']

/** Returns the breaker of the process that is worst off with the channel. */
const findWorst = (reports: readonly ChannelReport[]): Breaker =>
  (['open', 'half-open'] as const).find((breaker) => reports.some((report) => report.breaker === breaker)) ??
  'closed'

const chooseNewest = (a: LastError, b: LastError): LastError =>
  b !== null && (a === null || b.at > a.at) ? b : a

/**
 * Returns the reports of a channel, each with its process, and what they are together.
 * @param processes null, or none: no process answers, and the breaker is null
 */
export function joinReports(processes: readonly ProcessReport[] | null, id: string) {
  const located = (processes ?? []).flatMap(({ channels, ...process }) =>
    channels.filter(({ channel }) => channel === id).map((report) => ({ process, report })),
  )
  const reports = located.map(({ report }) => report)
  const sum = (field: 'in_flight' | 'recent_attempts' | 'recent_failures') =>
    reports.reduce((total, report) => total + report[field], 0)
  const joined = {
    in_flight: sum('in_flight'),
    breaker: processes === null || processes.length === 0 ? null : findWorst(reports),
    recent_attempts: sum('recent_attempts'),
    recent_failures: sum('recent_failures'),
    last_error: reports.map(({ last_error }) => last_error).reduce(chooseNewest, null),
  }
  return { located, reports, joined }
}
