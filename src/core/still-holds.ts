/** Waits by the wall clock, which may be set back. */

/**
 * Returns whether something still holds `until` an instant. One that is further away than it ever was is not believed:
 * the clock was set back.
 */
export const stillHolds = (until: number, now: number, longestMs: number): boolean =>
  now < until && until - now <= longestMs
