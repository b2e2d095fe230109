/** The spend of an account per day, and the days that its balance lasts at that rate. */
import type { Credits } from '../../../schemas/money.ts'
import { DAY_MS } from '../../../src/core/call-log/window.ts'

const RATE_DAYS = 7

interface SpendRate {
  readonly perDay: Credits
  /** Days before today of which `perDay` is the mean; 0: it is what today has cost so far. */
  readonly days: number
}

interface DayCost {
  /** `2026-01-31`, UTC. */
  readonly day: string
  readonly cost: Credits
}

const dateOf = (epochMs: number): string => new Date(epochMs).toISOString().slice(0, 10)

/**
 * Returns the mean of the last seven days, or of those since the first day with a cost where they are fewer: a new account
 * has no days to divide by. Today is not over, so it counts only where the days before it cost nothing.
 */
export function spendRate(rows: readonly DayCost[], now: number): SpendRate {
  const today = dateOf(now)
  const week = dateOf(now - RATE_DAYS * DAY_MS)
  const sumOf = (days: readonly DayCost[]) => days.reduce((sum, { cost }) => sum + cost, 0n)
  const spent = sumOf(rows.filter(({ day }) => day >= week && day < today))
  if (spent === 0n) return { perDay: sumOf(rows.filter(({ day }) => day === today)), days: 0 }
  const first = rows.reduce((least, { day, cost }) => (cost > 0n && day < least ? day : least), today)
  const days = Math.min(RATE_DAYS, Math.round((Date.parse(today) - Date.parse(first)) / DAY_MS))
  return { perDay: spent / BigInt(days), days }
}

/** Returns how many days the balance lasts; null where nothing is spent. */
export const runwayDays = (balance: Credits, { perDay }: SpendRate): number | null =>
  perDay > 0n ? Math.max(0, Number((balance * 10n) / perDay) / 10) : null
