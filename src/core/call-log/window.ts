/** The window of time that a log request names. See docs/api-rules.md, "Call log list". */

import type { WindowEnd } from '../../../schemas/call-log/query.ts'
import type { LogPeriod } from '../../../schemas/call-log/row.ts'

/** From `from`, inclusive, to `to`, exclusive; epoch milliseconds. */
export interface LogWindow {
  readonly from: number
  readonly to: number
}

export const DAY_MS = 24 * 60 * 60 * 1000

function periodStart(period: LogPeriod, now: Date): number {
  switch (period) {
    case 'today':
      return Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate())
    case 'this_month':
      return Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1)
    case '7d':
      return now.getTime() - 7 * DAY_MS
    case '30d':
      return now.getTime() - 30 * DAY_MS
    case 'all':
      return 0
  }
}

/** Returns a window that ends after the millisecond of `now`, so that it includes a call that ended just now. */
export const periodWindow = (period: LogPeriod, now: number): LogWindow => ({
  from: periodStart(period, new Date(now)),
  to: now + 1,
})

/** RFC 3339 has years of four digits, and an offset can lead beyond them. No call was that long ago, or will be. */
const FIRST_WRITABLE_MS = Date.parse('0000-01-01T00:00:00.000Z')
const LAST_WRITABLE_MS = Date.parse('9999-12-31T23:59:59.999Z')

const writable = (at: number): number => Math.min(Math.max(at, FIRST_WRITABLE_MS), LAST_WRITABLE_MS)

/** Returns the window. A day as `to` is included whole; an instant as `to` is excluded. */
export const rangeWindow = (from: WindowEnd, to: WindowEnd): LogWindow => ({
  from: writable(from.at),
  to: writable(to.kind === 'day' ? to.at + DAY_MS : to.at),
})
