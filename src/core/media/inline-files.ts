/** Separates the text of a JSON body from the files that it carries inline as base64. */
import type { Buffer } from 'node:buffer'
import { skipString } from '../json/fields.ts'

/** A shorter string is text: no limit depends on it. */
const MIN_FILE_BYTES = 4096
const QUOTE = 0x22
/** A slash may be escaped. */
const BASE64 = /^(?:data:[\w.+/;=\\-]{0,200},)?[A-Za-z0-9+/_=\\-]*$/

/**
 * Returns whether a JSON body is longer than `maxBytes` without its strings of base64 of 4 KiB and more. Reads no
 * further than it must.
 */
export function hasTextBeyond(body: Buffer, maxBytes: number): boolean {
  let fileBytes = 0
  let at = 0
  while (at < body.length && at - fileBytes <= maxBytes) {
    if (body[at] !== QUOTE) {
      at++
      continue
    }
    const end = skipString(body, at)
    const isFile = end - at > MIN_FILE_BYTES && BASE64.test(body.toString('latin1', at + 1, end - 1))
    if (isFile) fileBytes += end - at
    at = end
  }
  return at - fileBytes > maxBytes
}
