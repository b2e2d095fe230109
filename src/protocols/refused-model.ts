/** Which model a refused request was for, as far as it can be told: for the call log alone. */

import { readPath } from './generate-content-path.ts'

/** No model of the catalogue has a longer name. */
export const REFUSED_MODEL_MAX_CHARS = 200

function nameIn(path: string, body: Buffer): unknown {
  if (path.startsWith('/v1beta/')) return readPath(path)?.model
  return (JSON.parse(body.toString('utf8')) as { model?: unknown } | null)?.model
}

/** Empty when it cannot be told. */
export function refusedModel(path: string, body: Buffer): string {
  try {
    const name = nameIn(path, body)
    return typeof name === 'string' ? name.slice(0, REFUSED_MODEL_MAX_CHARS) : ''
  } catch {
    return ''
  }
}
