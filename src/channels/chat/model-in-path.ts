/** Bodies of the messages protocol for platforms whose path names the model. */
import { Buffer } from 'node:buffer'
import { parseRawJson } from '../../core/json/exact.ts'

/** Returns the body without the fields that the path says, and with further ones. Numbers stay as they are written. */
export function modelInPath(
  body: Buffer,
  without: readonly string[],
  fields: Readonly<Record<string, unknown>>,
): Buffer {
  const request = parseRawJson(body.toString('utf8')) as Record<string, unknown>
  const kept = Object.entries(request).filter(([name]) => !without.includes(name))
  return Buffer.from(JSON.stringify({ ...fields, ...Object.fromEntries(kept) }))
}
