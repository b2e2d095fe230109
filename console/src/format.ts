/** Formats texts, amounts, numbers and times, in the time zone that the user chose. */

const STORED = 'tollgate-time-zone'
const MINUTE_MS = 60_000

const NUMBER = new Intl.NumberFormat('en')
const SHORT_COUNT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const SHORT_AMOUNT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })

export const printNumber = (value: number): string => NUMBER.format(value)

/** Prints a number in its short form, for charts. */
export const printShortCount = (value: number): string => SHORT_COUNT.format(value)

/** Prints an amount in its short form, for charts. */
export const printShortAmount = (value: number): string => SHORT_AMOUNT.format(value)

/** `{count, plural, one {# call} other {# calls}}`: `#` is the number; a language without `one` has only `other`. */
const PLURAL = /\{(\w+), plural, (?:one \{([^{}]*)\} )?other \{([^{}]*)\}\}/g
const VALUE = /\{(\w+)\}/g

/** Fills in the values of a text. */
export const fillIn = (text: string, values: Readonly<Record<string, unknown>>): string =>
  text
    .replace(PLURAL, (_, name: string, one: string | undefined, other: string) => {
      const count = Number(values[name])
      return (count === 1 && one !== undefined ? one : other).replace('#', printNumber(count))
    })
    .replace(VALUE, (_, name: string) => String(values[name] ?? ''))

const AMOUNT = /^(-?)(\d+)(?:\.(\d+))?$/

/** Groups the digits of a decimal text and keeps all decimals: an amount is never a floating-point number. */
export function printExact(amount: string, minDecimals = 0): string {
  const [, sign = '', whole = '', decimals = ''] = AMOUNT.exec(amount) ?? []
  if (whole === '') return amount
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',')
  const fraction = decimals.padEnd(minDecimals, '0')
  return `${sign === '-' ? '−' : ''}${grouped}${fraction && `.${fraction}`}`
}

const MIN_DECIMALS = 2
const SIGNIFICANT_DECIMALS = 4

/** Rounds a decimal text, half away from zero. */
function round(amount: string, places: number): string {
  const [, sign = '', whole = '', decimals = ''] = AMOUNT.exec(amount) ?? []
  if (decimals.length <= places) return amount
  const digits = BigInt(whole + decimals.slice(0, places)) + (decimals.charAt(places) >= '5' ? 1n : 0n)
  const text = String(digits).padStart(places + 1, '0')
  const kept = `${text.slice(0, -places)}.${text.slice(-places)}`.replace(/0+$/, '').replace(/\.$/, '')
  return `${digits === 0n ? '' : sign}${kept}`
}

/** Prints an amount for reading: two decimals, and up to four significant ones of an amount below 100. */
export function printAmount(amount: string): string {
  const [, , whole = '', decimals = ''] = AMOUNT.exec(amount) ?? []
  if (whole === '') return amount
  const zeros = whole === '0' ? (/^0*/.exec(decimals)?.[0].length ?? 0) : 0
  return printExact(
    round(amount, whole.length > 2 ? MIN_DECIMALS : zeros + SIGNIFICANT_DECIMALS),
    MIN_DECIMALS,
  )
}

/** Returns the plain digits of a number that a person typed, in any form that the console prints. */
export const parseAmount = (text: string): string =>
  text.replace(/[\s,\u00a0\u202f]/g, '').replace('\u2212', '-')

/** Prints money in its currency, such as `5.00 USD`. */
export const printMoney = (amount: string, currency: string): string =>
  `${printExact(amount)} ${currency.toUpperCase()}`

/** Prints a fraction as a percentage, such as `2.5%`. */
export const printShare = (share: number): string => `${(share * 100).toFixed(1)}%`

/** Prints milliseconds in a short form, for charts. */
export const printDuration = (ms: number): string =>
  ms >= 1000 ? `${printShortAmount(ms / 1000)} s` : `${printShortAmount(ms)} ms`

/** Returns the time zone of the times that the user sees and types: the browser's, or UTC. */
export const readTimeZone = (): 'local' | 'utc' => (localStorage.getItem(STORED) === 'utc' ? 'utc' : 'local')
export const storeTimeZone = (zone: 'local' | 'utc'): void => localStorage.setItem(STORED, zone)

/** Prints an instant as `2026-11-23 18:30:00`. */
export const printTime = (instant: string): string =>
  new Date(instant).toLocaleString('sv-SE', readTimeZone() === 'utc' ? { timeZone: 'UTC' } : {})

/** Prints an instant for a date and time field; an empty text for null. */
export function printFieldTime(instant: string | null): string {
  if (instant === null) return ''
  const date = new Date(instant)
  const offset = readTimeZone() === 'utc' ? 0 : date.getTimezoneOffset()
  return new Date(date.getTime() - offset * MINUTE_MS).toISOString().slice(0, 16)
}

/** Returns the instant in a date and time field; null if the field is empty. */
export const parseFieldTime = (text: string): string | null =>
  text === '' ? null : new Date(readTimeZone() === 'utc' ? `${text}Z` : text).toISOString()

/** Returns the name of the time zone of all times: an IANA name, or UTC. */
export const readZoneName = (): string =>
  readTimeZone() === 'utc' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone

/** Returns the name of a field, a column or an axis of times, with their time zone. */
export const nameInZone = (name: string): string => `${name} (${readZoneName()})`

/** Prints an instant in full, with the reader's time zone and in UTC. */
export const printInFull = (instant: string): string => `${nameInZone(printTime(instant))}, ${instant}`

/** Returns the instant at which a day such as `2026-11-23` begins, or a number of days later. */
export function toDayStart(day: string, daysLater = 0): Date {
  const [year = 0, month = 1, date = 1] = day.split('-').map(Number)
  return readTimeZone() === 'utc'
    ? new Date(Date.UTC(year, month - 1, date + daysLater))
    : new Date(year, month - 1, date + daysLater)
}

/** Prints the day of an instant, such as `2026-11-23`. */
export const printDay = (instant: string): string => printTime(instant).slice(0, 10)

/** Returns the days that begin between two instants. */
export function listDays(from: string, to: string): string[] {
  const days: string[] = []
  const first = printDay(from)
  for (let start = toDayStart(first); start < new Date(to); start = toDayStart(first, days.length))
    days.push(printDay(start.toISOString()))
  return days
}

interface Window {
  readonly period?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
}

const IS_DAY = /^\d{4}-\d\d-\d\d$/

const toStart = (from: string, daysLater = 0): string =>
  IS_DAY.test(from) ? toDayStart(from, daysLater).toISOString() : from

const readToday = (): string => printDay(new Date().toISOString())

/** Returns the window with the days, and the month, of the reader's time zone. */
export function toZoneWindow({ period, from, to }: Window): Window {
  if (from !== undefined && to !== undefined) return { from: toStart(from), to: toStart(to, 1) }
  const today = readToday()
  const first = { today, this_month: `${today.slice(0, 8)}01` }[period ?? '']
  if (first === undefined) return { period }
  return { from: toDayStart(first).toISOString(), to: toDayStart(today, 1).toISOString() }
}

const PERIOD_DAYS: Readonly<Record<string, number>> = { '7d': 7, '30d': 30 }

/** Returns the time of the window for a list of records; a period of days ends with today. */
export function toZoneRange({ period = '', from, to }: Window): { since?: string; until?: string } {
  if (from !== undefined || to !== undefined)
    return { ...(from && { since: toStart(from) }), ...(to && { until: toStart(to, 1) }) }
  const { [period]: days } = PERIOD_DAYS
  if (days !== undefined) return { since: toDayStart(readToday(), 1 - days).toISOString() }
  const { from: since, to: until } = toZoneWindow({ period })
  return { ...(since && { since }), ...(until && { until }) }
}
