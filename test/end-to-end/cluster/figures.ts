/** How many calls a fault cost, and for how long. */

import type { SeenCall } from '../chaos/load.ts'
import { isAnswered, refusals } from '../chaos/outage.ts'

export interface FaultFigures {
  readonly calls: number
  /** Calls that the service failed, and those whose connection was cut. */
  readonly failed: number
  /** From the first call that failed was sent to the last one was over; 0 where none failed. */
  readonly failedForMs: number
  /** The longest that a call took which was answered. */
  readonly longestMs: number
  /** The longest time in which no call was answered. */
  readonly silentMs: number
}

/** @param seen calls that nothing but the fault can fail */
export function figuresOf(seen: readonly SeenCall[]): FaultFigures {
  const failed = [...refusals(seen), ...seen.filter(({ status, end }) => status === null && end === 'cut')]
  const answered = seen.filter(isAnswered)
  const ends = answered.map(({ endedAt }) => endedAt).sort((a, b) => a - b)
  const gaps = ends.map((end, at) => end - (ends[at - 1] ?? end))
  const lasted =
    failed.length === 0
      ? 0
      : Math.max(...failed.map(({ endedAt }) => endedAt)) - Math.min(...failed.map(({ sentAt }) => sentAt))
  return {
    calls: seen.length,
    failed: failed.length,
    failedForMs: Math.round(lasted),
    longestMs: Math.round(Math.max(0, ...answered.map(({ sentAt, endedAt }) => endedAt - sentAt))),
    silentMs: Math.round(Math.max(0, ...gaps)),
  }
}

export const printFigures = ({ calls, failed, failedForMs, longestMs, silentMs }: FaultFigures): string =>
  `${failed} of ${calls} calls failed, within ${failedForMs} ms; the longest answer took ${longestMs} ms, and for ` +
  `${silentMs} ms no call was answered`
