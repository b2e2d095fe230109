import { FIRST_LOG_INSTANT_MS, LAST_LOG_INSTANT_MS } from '../../schemas/call-log/usage-row.ts'

/** Returns epoch milliseconds as `2026-01-31 23:59:59.999`, in UTC, as ClickHouse reads it. */
export function toClickHouseInstant(epochMs: number): string {
  const held = Math.min(Math.max(epochMs, FIRST_LOG_INSTANT_MS), LAST_LOG_INSTANT_MS)
  return new Date(held).toISOString().replace('T', ' ').slice(0, -1)
}
