/** Reading JSON of which nothing is certain: what upstreams send. */
import { isRawNumber, parseExactJson } from '../core/json/exact.ts'

export type LooseObject = Readonly<Record<string, unknown>>

/** An object, and no array. */
export const isObject = (value: unknown): value is LooseObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value)

/** An object's fields; none of anything else. */
export const fieldsOf = (value: unknown): LooseObject =>
  typeof value === 'object' && value !== null && !isRawNumber(value) ? (value as LooseObject) : {}

/** An array's items; none of anything else. */
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** Empty for what is no string. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The fields of the JSON in `text`, numbers with all their digits; null where it is no JSON or nests too deep. */
export function parsedFields(text: string): LooseObject | null {
  try {
    return fieldsOf(parseExactJson(text))
  } catch {
    return null
  }
}
