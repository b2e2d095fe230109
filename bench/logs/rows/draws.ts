/** SQL expressions that turn a 64-bit random number into a value. A draw is an expression of ClickHouse's type UInt64. */
import { aliasTable } from './skew.ts'

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const ULID_CHARS = 26
/** The text of a ULID has 50 bits of time; the first 64 bits end with this many random bits. */
const ULID_HEAD_CHANCE_BITS = 14

export const text = (value: string): string => `'${value.replaceAll(/[\\']/g, '\\$&')}'`
export const texts = (values: readonly string[]): string => `[${values.map(text).join(',')}]`
export const numbers = (values: readonly number[]): string => `[${values.join(',')}]`

/** Selects a share by the draw, counted from 1. */
export const drawOne = (shares: readonly number[], draw: string): string => {
  const { thresholds, aliases } = aliasTable(shares)
  const slot = `(${draw} % ${shares.length} + 1)`
  const other = `${numbers(aliases.map((alias) => alias + 1))}[${slot}]`
  return `if(bitShiftRight(${draw}, 32) < ${numbers(thresholds)}[${slot}], ${slot}, ${other})`
}

/** A number from 0 to 1, from the lower or upper half of the draw. */
export const lower = (draw: string): string => `(bitAnd(${draw}, 4294967295) / 4294967296)`
export const upper = (draw: string): string => `(bitShiftRight(${draw}, 32) / 4294967296)`

/** The ULID of an instant (expression of epoch milliseconds), with random bits from two draws. */
export const ulid = (ms: string, draw: string, other: string): string => {
  const chance = `bitAnd(${other}, ${2 ** ULID_HEAD_CHANCE_BITS - 1})`
  const head = `bitOr(bitShiftLeft(toUInt64(${ms}), ${ULID_HEAD_CHANCE_BITS}), ${chance})`
  const tail = `reinterpretAsFixedString(${draw}), reinterpretAsFixedString(${other})`
  const bytes = `concat(reverse(reinterpretAsFixedString(${head})), ${tail})`
  return `translate(substring(base32Encode(${bytes}), 1, ${ULID_CHARS}), '${BASE32}', '${CROCKFORD}')`
}

export const instant = (ms: string): string => `fromUnixTimestamp64Milli(toInt64(${ms}), 'UTC')`
/** `2026-01-31T23:59:59.999Z`. */
export const iso = (ms: string): string =>
  `concat(replaceOne(substring(toString(${instant(ms)}), 1, 23), ' ', 'T'), 'Z')`
