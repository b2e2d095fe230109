/** Reading JSON of which nothing is certain: what upstreams send. */
import { isRawNumber, parseExactJson } from '../core/json/exact.ts'

export type LooseObject = Readonly<Record<string, unknown>>

/** Returns true for an object that is no array. */
export const isObject = (value: unknown): value is LooseObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value)

/** Returns an object's fields; an empty object for any other value. */
export const toFields = (value: unknown): LooseObject =>
  typeof value === 'object' && value !== null && !isRawNumber(value) ? (value as LooseObject) : {}

/** Returns an array's items; an empty list for any other value. */
export const toList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** Returns a string; an empty one for any other value. */
export const toText = (value: unknown): string => (typeof value === 'string' ? value : '')

/**
 * Returns the fields of the JSON in `text`, numbers with all their digits; null for a text that is no JSON or nests
 * too deep.
 */
export function parseFields(text: string): LooseObject | null {
  try {
    return toFields(parseExactJson(text))
  } catch {
    return null
  }
}

/** Returns the value of the JSON in `text`; undefined for a text that is no JSON. */
export function parseValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
