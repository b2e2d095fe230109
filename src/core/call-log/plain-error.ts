/** Reads an error body that is no JSON: some upstreams, and the proxies in front of them, write one sentence. */
import type { Buffer } from 'node:buffer'
import { REDACTED_MAX_CHARS } from './redact.ts'

/** Longer than a message, so that masking has whole words at the cut; bytes beyond are not read. */
const READ_MAX_BYTES = 4 * REDACTED_MAX_CHARS
/** A page, or JSON that is cut off. */
const MARKUP = /^\ufeff?[<{[]/
/** Bytes of a compressed or binary body. */
const NO_TEXT = /[\0\ufffd]/

/**
 * Returns the text of a body; null for markup such as a page of HTML, for broken JSON, for bytes that are no text, and for
 * an empty body.
 */
export function plainErrorText(body: Buffer): string | null {
  const text = body.toString('utf8', 0, READ_MAX_BYTES).trim()
  // The cut may have left half a character.
  const whole = body.length > READ_MAX_BYTES ? text.replace(/\ufffd{1,3}$/, '') : text
  return whole === '' || MARKUP.test(whole) || NO_TEXT.test(whole) ? null : whole
}
