/** Values as PostgreSQL can keep them. */
import type { Queryable } from './connection.ts'

// PostgreSQL's text cannot hold this one character.
const NUL = /\0/g

/** Removes what PostgreSQL's text cannot hold: NULs, and halves of characters. */
export const toStorable = (text: string): string => text.replace(NUL, '').toWellFormed()

/** NULs and lone surrogates as JSON writes them. A client's text may look so and be none. */
const UNSTORABLE = /\\u(?:0000|d[89a-f])/

function toStorableValue(value: unknown): unknown {
  if (typeof value === 'string') return toStorable(value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [toStorable(name), inner]))
}

/** Returns JSON without escaped NULs and lone surrogates, which are valid JSON, but no text for PostgreSQL. */
export function printJson(value: unknown): string {
  const text = JSON.stringify(value)
  return UNSTORABLE.test(text) ? JSON.stringify(value, (_, inner) => toStorableValue(inner)) : text
}

/** Returns a value for a column of JSON. */
export const jsonValue = (sql: Queryable, value: unknown) => sql`${printJson(value)}::text::json`
