/** One text for every way to write the same JSON value: what two requests are compared by. */
import { createHash } from 'node:crypto'
import { isRawNumber, makeRawNumber, parseExactJson, toCanonicalNumber } from './exact.ts'

function sortFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortFields)
  if (typeof value !== 'object' || value === null) return value
  if (isRawNumber(value)) return makeRawNumber(toCanonicalNumber(value.rawJSON))
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, inner]) => [name, sortFields(inner)]))
}

/**
 * Returns a canonical form: keys in order, without white space, one spelling of numbers. Returns a body that is not
 * JSON unchanged.
 */
export function toCanonicalBody(body: Buffer): string | Buffer {
  try {
    return JSON.stringify(sortFields(parseExactJson(body.toString('utf8'))))
  } catch {
    return body
  }
}

const hash = (method: string, path: string, query: string, text: string | Buffer): Buffer =>
  createHash('sha256').update(`${method} ${path}?${query}\n`).update(text).digest()

/** Returns SHA-256 of a request's method, path, query and body. */
export const hashRequest = (method: string, path: string, query: string, body: Buffer): Buffer =>
  hash(method, path, query, toCanonicalBody(body))

/** Returns SHA-256 of a request's method, path and query, and of what its body means. A null field is an absent one. */
export function hashMeaning(method: string, path: string, query: string, meaning: object): Buffer {
  const given = Object.entries(meaning).filter(([, value]) => value !== null)
  return hash(method, path, query, JSON.stringify(sortFields(Object.fromEntries(given))))
}
