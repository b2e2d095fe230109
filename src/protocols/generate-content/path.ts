/**
 * The generate-content protocol names model and method in the path, and the framing of a stream in the query.
 * See docs/api-rules.md, "Chat protocols".
 */
import { CONTENT_COLLECTIONS } from '../../../schemas/routes.ts'
import { withoutCollection } from '../../core/routing/generate-model-name.ts'

/** `sse` with `alt=sse` in the query; without it a stream is one JSON array that comes in pieces. */
export type Framing = 'sse' | 'array'

const METHODS = ['generateContent', 'streamGenerateContent', 'countTokens'] as const
type Method = (typeof METHODS)[number]

interface CalledMethod {
  readonly model: string
  readonly method: Method
}

/** Versions that no other protocol has. */
const OWN_VERSION = /^\/v1(?:beta|alpha)\//
/** A method at a model, served or not; the colon may be escaped. */
const METHOD_AT_MODEL = /^\/v1\/models\/.*(?::|%3[Aa])[a-z]+[A-Z][A-Za-z]*$/

/** Returns whether a path is one of the protocol, served or not. */
export const isContentPath = (path: string): boolean => OWN_VERSION.test(path) || METHOD_AT_MODEL.test(path)

/** Returns the text itself where its escapes are malformed: no model has that name. */
function decodeName(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * Reads the model and the method. The model may contain slashes, escaped or not, and follow another `models/`. Returns
 * null for any other path.
 */
export function readPath(path: string): CalledMethod | null {
  const prefix = CONTENT_COLLECTIONS.find((collection) => path.startsWith(collection))
  if (prefix === undefined) return null
  const tail = decodeName(path.slice(prefix.length))
  const colon = tail.lastIndexOf(':')
  const method = METHODS.find((name) => name === tail.slice(colon + 1))
  if (colon < 0 || method === undefined) return null
  const model = withoutCollection(tail.slice(0, colon))
  return model === '' ? null : { model, method }
}

export const readFraming = (query: string): Framing =>
  new URLSearchParams(query).get('alt') === 'sse' ? 'sse' : 'array'
