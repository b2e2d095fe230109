/** Pieces of SQL that make something of a 64-bit draw. A draw is an expression of ClickHouse's type UInt64. */
import { aliasTable } from './skew.ts'

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const ULID_CHARS = 26
/** A ULID's time has 50 bits in its text; below them stand so many of chance in the first 64. */
const ULID_HEAD_CHANCE_BITS = 14

export const text = (value: string): string => `'${value.replaceAll(/[\\']/g, '\\$&')}'`
export const texts = (values: readonly string[]): string => `[${values.map(text).join(',')}]`
export const numbers = (values: readonly number[]): string => `[${values.join(',')}]`

/** Which of the shares the draw falls on, counted from 1. */
export const oneOf = (shares: readonly number[], draw: string): string => {
  const { thresholds, aliases } = aliasTable(shares)
  const slot = `(${draw} % ${shares.length} + 1)`
  const other = `${numbers(aliases.map((alias) => alias + 1))}[${slot}]`
  return `if(bitShiftRight(${draw}, 32) < ${numbers(thresholds)}[${slot}], ${slot}, ${other})`
}

/** 0 to 1, from the lower and from the upper half of the draw. */
export const lower = (draw: string): string => `(bitAnd(${draw}, 4294967295) / 4294967296)`
export const upper = (draw: string): string => `(bitShiftRight(${draw}, 32) / 4294967296)`

/** The ULID of an instant (expression of epoch milliseconds), its chance taken from two draws. */
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
