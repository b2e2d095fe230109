/** Joins the reports of the running processes. */
import type { ProcessReport } from '../../../schemas/config/channel-report.ts'

/** Reports do not need the exactness of books: they sum up estimates of several processes at several instants. */
const printAmount = (credits: number): string => credits.toFixed(8).replace(/\.?0+$/, '') || '0'

const compareNames = (a: { readonly name: string }, b: { readonly name: string }): number =>
  a.name.localeCompare(b.name)

/** @param now epoch milliseconds */
export function sumReports(reports: readonly ProcessReport[], now: number) {
  const readValues = (gauge: string) => reports.map(({ gauges }) => gauges[gauge] ?? 0)
  const sum = (gauge: string) => readValues(gauge).reduce((all, value) => all + value, 0)
  const engines = Map.groupBy(
    reports.flatMap((report) => Object.entries(report.engines).map(([name, isUp]) => ({ name, isUp }))),
    ({ name }) => name,
  )
  return {
    at: new Date(now).toISOString(),
    processes: reports
      .map(({ process, host, pid, version, started_at, gauges }) => ({
        process,
        host,
        pid,
        version,
        started_at,
        calls_in_flight: gauges.tollgate_calls_in_flight ?? 0,
        is_draining: gauges.tollgate_draining === 1,
      }))
      .toSorted((a, b) => a.host.localeCompare(b.host) || a.process.localeCompare(b.process)),
    engines: [...engines]
      .map(([name, states]) => ({ name, is_up: states.every(({ isUp }) => isUp) }))
      .toSorted(compareNames),
    calls_in_flight: sum('tollgate_calls_in_flight'),
    reserved: printAmount(sum('tollgate_reserved_credits')),
    settlement_lag_seconds: Math.max(0, ...readValues('tollgate_settlement_lag_seconds')),
    unbooked_settlements: sum('tollgate_journal_unbooked'),
    log_lag_seconds: Math.max(0, ...readValues('tollgate_log_lag_seconds')),
  }
}
