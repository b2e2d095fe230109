/** Reads the values of options and arguments; an invalid one is a usage error. */
import { InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { MAX_NAME_CHARS, MAX_NOTE_CHARS, MAX_REQUEST_LIMIT } from '../../schemas/accounts/account.ts'
import { MAX_GRACE_SECONDS } from '../../schemas/accounts/key.ts'
import { windowEnd } from '../../schemas/call-log/query.ts'
import { CALL_STATUSES, type CallStatus, callStatus } from '../../schemas/call-log/row.ts'
import { MAX_DAYS } from '../../schemas/management/payments/payments.ts'
import { type Credits, parseCredits, parseRate, type Rate } from '../../schemas/money.ts'

/** Of a list that a command prints. */
const MAX_ENTRIES = 10_000

const timestamp = z.union([z.iso.datetime({ offset: true }), z.iso.date()])

export function nameText(text: string): string {
  const name = text.trim()
  if (name === '' || name.length > MAX_NAME_CHARS)
    throw new InvalidArgumentError(`A name has 1 to ${MAX_NAME_CHARS} characters.`)
  return name
}

/** Reads a spend cap, or none. */
export const creditsOrNone = (text: string): Credits | 'none' => (text === 'none' ? text : credits(text))

export function credits(text: string): Credits {
  const amount = signedCredits(text)
  if (amount >= 0n) return amount
  throw new InvalidArgumentError('An amount is never negative.')
}

/** Reads a signed amount, such as 25 and -25. */
export function signedCredits(text: string): Credits {
  try {
    return parseCredits(text)
  } catch (error) {
    throw new InvalidArgumentError(`${(error as Error).message}.`)
  }
}

/** Reads the reason of a change of a balance, or its external reference, such as an invoice's number. */
export function noteText(text: string): string {
  const note = text.trim()
  if (note === '' || note.length > MAX_NOTE_CHARS || note.includes('\0'))
    throw new InvalidArgumentError(`It has 1 to ${MAX_NOTE_CHARS} characters.`)
  return note
}

// The words mean null, which the parser of the command line would take for an empty value.

/** Reads a limit of the platform or of a key, or none. */
export const limitOrNone = (text: string): number | 'none' =>
  text === 'none' ? text : wholeNumber(text, MAX_REQUEST_LIMIT, 'or "none"')

export const keyLimit = (text: string): number => wholeNumber(text, MAX_REQUEST_LIMIT)

/** Reads how many credits a US dollar of a list is worth. */
export function creditsPerUsd(text: string): Rate {
  try {
    const rate = parseRate(text)
    if (rate > 0n) return rate
  } catch {
    // Said below.
  }
  throw new InvalidArgumentError('It is a number above 0, such as 1 or 7.2.')
}

const SECONDS_OF: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 }

/** Reads for how long a former secret works after the first use of its successor, such as 24h; in seconds. */
export function grace(text: string): number {
  const [, count = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  const seconds = Number(count) * (SECONDS_OF[unit] ?? Number.NaN)
  if (seconds <= MAX_GRACE_SECONDS) return seconds
  throw new InvalidArgumentError('It is a time from 0s to 7d, such as 30m, 24h or 2d.')
}

/** Reads addresses and networks, such as 10.0.0.0/8; the act checks each. */
export const addressList = (text: string): string[] =>
  commaList(text, 'It is a comma list of addresses and networks.')

export const addressesOrAny = (text: string): string[] | 'any' => (text === 'any' ? text : addressList(text))

export const entryLimit = (text: string): number => wholeNumber(text, MAX_ENTRIES)

export const reconciledDays = (text: string): number => wholeNumber(text, MAX_DAYS)

/** Reads a number of existing rows to print first; 0 for none. */
export const tailLines = (text: string): number =>
  /^0+$/.test(text) ? 0 : wholeNumber(text, MAX_ENTRIES, 'or 0')

function wholeNumber(text: string, max: number, otherwise = ''): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : 0
  if (value < 1 || value > max)
    throw new InvalidArgumentError(`It is a whole number from 1 to ${max}${otherwise && `, ${otherwise}`}.`)
  return value
}

/** Reads the models that a key may call; an empty list for "none". */
export function modelList(text: string): string[] | 'all' {
  if (text === 'all') return text
  if (text === 'none') return []
  return commaList(text, 'It is a comma list of model ids, "all" or "none".')
}

export const exactNames = (text: string): readonly string[] => commaList(text, 'It is a comma list of names.')

export function callStatuses(text: string): readonly CallStatus[] {
  const wrong = `It is a comma list of ${CALL_STATUSES.join(', ')}.`
  return commaList(text, wrong).map((name) => {
    const status = callStatus.safeParse(name)
    if (!status.success) throw new InvalidArgumentError(wrong)
    return status.data
  })
}

function commaList(text: string, wrong: string): string[] {
  const parts = text.split(',').map((part) => part.trim())
  if (parts.includes('')) throw new InvalidArgumentError(wrong)
  return [...new Set(parts)]
}

/** Reads RFC 3339, such as 2030-01-31T12:00:00Z, or a day. */
export function instant(text: string): Date {
  if (!timestamp.safeParse(text).success)
    throw new InvalidArgumentError('It is an RFC 3339 time such as 2030-01-31T12:00:00Z.')
  return new Date(text)
}

/** Checks one end of a window of time: a day of UTC, or an instant. */
export function windowEndText(text: string): string {
  const parsed = windowEnd.safeParse(text)
  if (parsed.success) return text
  throw new InvalidArgumentError(`${parsed.error.issues[0]!.message}.`)
}

/** Reads when a key expires: an instant in the future. */
export function expiry(text: string): Date {
  const at = instant(text)
  if (at.getTime() > Date.now()) return at
  throw new InvalidArgumentError('It is past: the key would be refused at once. Name a later time.')
}

export const expiryOrNever = (text: string): Date | 'never' => (text === 'never' ? text : expiry(text))

/** Returns an option's value, with null for the word that means it. */
export const orNull = <Value, Word extends string>(value: Value, word: Word): Exclude<Value, Word> | null =>
  Object.is(value, word) ? null : (value as Exclude<Value, Word>)
