/** One text for every way to write the same JSON value: what two requests are compared by. */
import { createHash } from 'node:crypto'
import { canonicalNumber, isRawNumber, parseExactJson, rawNumber } from './exact.ts'

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  if (isRawNumber(value)) return rawNumber(canonicalNumber(value.rawJSON))
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, inner]) => [name, sorted(inner)]))
}

/**
 * Returns a canonical form: keys in order, without white space, one spelling of numbers. Returns a body that is not
 * JSON unchanged.
 */
export function canonicalBody(body: Buffer): string | Buffer {
  try {
    return JSON.stringify(sorted(parseExactJson(body.toString('utf8'))))
  } catch {
    return body
  }
}

/** Returns SHA-256 of a request's method, path, query and body. */
export function requestHash(method: string, path: string, query: string, body: Buffer): Buffer {
  return createHash('sha256').update(`${method} ${path}?${query}\n`).update(canonicalBody(body)).digest()
}
