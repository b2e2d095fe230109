/** Instants as ClickHouse reads them: `DateTime64(3)` holds the years 1970 to 2299. */

const EARLIEST_MS = 0
const LATEST_MS = Date.UTC(2299, 0, 1)

/** Epoch milliseconds to `2026-01-31 23:59:59.999`, in UTC; what the column cannot hold becomes its nearest end. */
export function toClickHouseInstant(epochMs: number): string {
  const held = Math.min(Math.max(epochMs, EARLIEST_MS), LATEST_MS)
  return new Date(held).toISOString().replace('T', ' ').slice(0, -1)
}
