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

const hash = (method: string, path: string, query: string, text: string | Buffer): Buffer =>
  createHash('sha256').update(`${method} ${path}?${query}\n`).update(text).digest()

/** Returns SHA-256 of a request's method, path, query and body. */
export const requestHash = (method: string, path: string, query: string, body: Buffer): Buffer =>
  hash(method, path, query, canonicalBody(body))

/** Returns SHA-256 of a request's method, path and query, and of what its body means. A null field is an absent one. */
export function meaningHash(method: string, path: string, query: string, meaning: object): Buffer {
  const given = Object.entries(meaning).filter(([, value]) => value !== null)
  return hash(method, path, query, JSON.stringify(sorted(Object.fromEntries(given))))
}
