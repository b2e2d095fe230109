/** Tells the text of a JSON body from the files that it carries inline as base64. */
import type { Buffer } from 'node:buffer'
import { skipString } from './json-fields.ts'

/** A shorter string is text: no limit depends on it. */
const MIN_FILE_BYTES = 4096
const QUOTE = '"'
/** A slash may be escaped. */
const BASE64 = /^(?:data:[\w.+/;=\\-]{0,200},)?[A-Za-z0-9+/_=\\-]*$/

/** Returns the bytes of a JSON body without its strings of base64 of 4 KiB and more. */
export function textBytesOf(body: Buffer): number {
  let bytes = body.length
  let at = body.indexOf(QUOTE)
  while (at >= 0) {
    const end = skipString(body, at)
    if (end - at > MIN_FILE_BYTES && BASE64.test(body.toString('latin1', at + 1, end - 1))) bytes -= end - at
    at = body.indexOf(QUOTE, end)
  }
  return bytes
}
