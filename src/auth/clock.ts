/** Names a wrong clock: tokens and signatures carry the time, and a server refuses those of another hour. */

/** Servers that check the time allow five minutes, some less. */
const MAX_DIFFERENCE_MS = 2 * 60_000
const MS_PER_SECOND = 1000

/**
 * Returns what is wrong with the clock of this machine, by the `date` of a server that has just answered; null where
 * nothing is.
 */
export function describeClockProblem(date: string | null, now: number): string | null {
  const difference = now - Date.parse(date ?? '')
  if (!(Math.abs(difference) > MAX_DIFFERENCE_MS)) return null
  const seconds = Math.round(Math.abs(difference) / MS_PER_SECOND)
  const way = difference > 0 ? 'ahead of' : 'behind'
  return `The clock of this machine is wrong: it is ${seconds} seconds ${way} that of the server. Set it, such as by NTP`
}
