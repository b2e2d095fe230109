/** Reading JSON of which nothing is certain: what upstreams send. */

export type Loose = Readonly<Record<string, unknown>>

/** An object, and no array. */
export const isObject = (value: unknown): value is Loose =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An object's fields; none of anything else. */
export const fieldsOf = (value: unknown): Loose =>
  typeof value === 'object' && value !== null ? (value as Loose) : {}

/** Empty for what is no string. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The fields of the JSON in `text`; null where that is no JSON. */
export function parsedFields(text: string): Loose | null {
  try {
    return fieldsOf(JSON.parse(text))
  } catch {
    return null
  }
}
