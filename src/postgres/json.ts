/** Values as PostgreSQL can keep them. */
import type { Queryable } from './connection.ts'

// PostgreSQL's text cannot hold this one character.
const NUL = /\0/g

/** Removes what PostgreSQL's text cannot hold: NULs, and halves of characters. */
export const storable = (text: string): string => text.replace(NUL, '').toWellFormed()

/** Returns JSON without escaped NULs and lone surrogates, which are valid JSON, but no text for PostgreSQL. */
export const jsonText = (value: unknown): string =>
  JSON.stringify(value, (_, inner) => (typeof inner === 'string' ? storable(inner) : inner))

/** Returns a value for a column of JSON. */
export const jsonValue = (sql: Queryable, value: unknown) => sql`${jsonText(value)}::text::json`
