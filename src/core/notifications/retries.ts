/** When a delivery that failed is tried again: with growing pauses, for about a day. */

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/** The pause after each attempt; after one more the delivery has failed. Together 23 hours and 43 minutes. */
const PAUSES_MS: readonly number[] = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  4 * HOUR_MS,
  6 * HOUR_MS,
  10 * HOUR_MS,
]

/** Receivers that failed together are not asked together again: up to so much of a pause is added. */
const JITTER = 0.1

/**
 * Returns the pause before the next attempt; null where there is none.
 * @param tries attempts before the one that failed
 * @param random from 0 to 1
 */
export function pauseAfter(tries: number, random: number): number | null {
  const pause = PAUSES_MS[tries]
  return pause === undefined ? null : Math.round(pause * (1 + JITTER * random))
}
