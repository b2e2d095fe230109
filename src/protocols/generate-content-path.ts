/**
 * The generate-content protocol names model and method in the path, and the framing of a stream in the query.
 * Source: specification, "POST /v1beta/models/{model}:generateContent and :streamGenerateContent".
 */

/** `sse` with `alt=sse` in the query; without it a stream is one JSON array that comes in pieces. */
export type Framing = 'sse' | 'array'

export interface CalledMethod {
  readonly model: string
  readonly stream: boolean
}

const PREFIX = '/v1beta/models/'
const OWN_COLLECTION = 'models/'
const METHODS: Readonly<Record<string, boolean>> = { generateContent: false, streamGenerateContent: true }

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** The model may hold slashes, escaped or not, and stand behind another `models/`. Null for any other path. */
export function readPath(path: string): CalledMethod | null {
  if (!path.startsWith(PREFIX)) return null
  const tail = decoded(path.slice(PREFIX.length))
  if (tail === null) return null
  const colon = tail.lastIndexOf(':')
  const method = tail.slice(colon + 1)
  if (colon < 0 || !Object.hasOwn(METHODS, method)) return null
  const named = tail.slice(0, colon)
  const model = named.startsWith(OWN_COLLECTION) ? named.slice(OWN_COLLECTION.length) : named
  return model === '' ? null : { model, stream: METHODS[method]! }
}

export const readFraming = (query: string): Framing =>
  new URLSearchParams(query).get('alt') === 'sse' ? 'sse' : 'array'
