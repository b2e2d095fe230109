/** Periods of a time zone as ICU computes them, which shares no code and no data with PostgreSQL. */
import type { BudgetPeriod } from '../../../../schemas/accounts/budget.ts'

export const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kolkata',
  'Pacific/Apia',
  'Africa/Cairo',
  'America/Havana',
  'Australia/Lord_Howe',
] as const

const DAY_MS = 86_400_000
const MOST_DAYS = 33

const formats = new Map<string, Intl.DateTimeFormat>()

/** The local date, as the UTC midnight of the same date. */
function dateIn(zone: string, at: number): Date {
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat('en', { timeZone: zone, year: 'numeric', month: 'numeric', day: 'numeric' })
  formats.set(zone, format)
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
  return new Date(Date.UTC(parts.get('year')!, parts.get('month')! - 1, parts.get('day')!))
}

/** Names the local day, week or month: it rises with time. */
function nameOf(period: BudgetPeriod, zone: string, at: number): number {
  const date = dateIn(zone, at)
  if (period === 'month') return date.getUTCFullYear() * 12 + date.getUTCMonth()
  const day = date.getTime() / DAY_MS
  // The first day of 1970 was a Thursday.
  return period === 'day' ? day : Math.floor((day + 3) / 7)
}

/** Returns the first millisecond of the period that an instant is in. */
export function periodStart(period: BudgetPeriod, zone: string, at: number): number {
  const name = nameOf(period, zone, at)
  let [before, within] = [at - MOST_DAYS * DAY_MS, at]
  while (within - before > 1) {
    const middle = Math.floor((before + within) / 2)
    if (nameOf(period, zone, middle) === name) within = middle
    else before = middle
  }
  return within
}
