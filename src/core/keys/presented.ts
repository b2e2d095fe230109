/** The places of a key in a request. See docs/api-rules.md, "Finding the key". */
import { KEY_PATTERN } from '../../../schemas/accounts/key.ts'

/** Reads a header by its lower-case name; the empty string when it is absent. */
export type HeaderLookup = (name: string) => string

const SCHEME = 'bearer '
const KEY_HEADERS = ['x-api-key', 'x-partner-api-key', 'x-goog-api-key'] as const
/** The headers that `GET /v1/models` reads. */
const LIST_KEY_HEADERS = ['x-api-key', 'x-goog-api-key'] as const

/** Returns the first credential present: three headers, the query parameter `key`, then `Authorization: Bearer`. */
export const findRequestKey = (header: HeaderLookup, query: string): string | null =>
  findNamedKey(header, KEY_HEADERS) ?? findQueryKey(query) ?? findBearerToken(header)

/** Returns the key from the three headers that `GET /v1/models` accepts. */
export const findHeaderKey = (header: HeaderLookup): string | null =>
  findNamedKey(header, LIST_KEY_HEADERS) ?? findBearerToken(header)

function findNamedKey(header: HeaderLookup, names: readonly string[]): string | null {
  for (const name of names) {
    const value = header(name)
    if (value !== '') return value
  }
  return null
}

function findQueryKey(query: string): string | null {
  return query.includes('key=') ? new URLSearchParams(query).get('key') || null : null
}

/** Returns the query without its key. */
export function withoutKey(query: string): string {
  if (findQueryKey(query) === null) return query
  const asked = new URLSearchParams(query)
  asked.delete('key')
  return asked.toString()
}

/** Returns the credential of `Authorization: Bearer`; null without one. */
export function findBearerToken(header: HeaderLookup): string | null {
  const value = header('authorization')
  if (value.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return null
  // Not `trim`, which also takes characters away that are no space in a header.
  let [start, end] = [SCHEME.length, value.length]
  while (value[start] === ' ') start++
  while (value[end - 1] === ' ') end--
  return value.slice(start, end)
}

export const isWellFormedKey = (key: string): boolean => KEY_PATTERN.test(key)
