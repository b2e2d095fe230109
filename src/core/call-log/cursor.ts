/**
 * The cursor of the call log: where page 1's window lies, in which direction it is read, and behind which row the
 * next page begins. Signed, and good for one account only. See docs/api-rules.md, "Call log list".
 */
import { Buffer } from 'node:buffer'
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { LogOrder } from '../../../schemas/call-log/query.ts'
import type { LogWindow } from './window.ts'

export interface LogCursor {
  readonly order: LogOrder
  readonly window: LogWindow
  /** The last row of the page before: its instant in epoch milliseconds, and its id. */
  readonly after: { readonly createdAt: number; readonly id: number }
}

const FORMAT = 1
const SIGNATURE_BYTES = 16
const TOKEN = /^([\w-]{1,300})\.([\w-]{22})$/

/** The format, the order, the window's two ends, the last row's instant and id. */
type Payload = readonly [
  format: number,
  order: LogOrder,
  from: number,
  to: number,
  createdAt: number,
  id: number,
]

const sign = (key: Uint8Array, accountId: string, text: string): Buffer =>
  createHmac('sha256', key).update(`log cursor\n${accountId}\n${text}`).digest().subarray(0, SIGNATURE_BYTES)

export function printCursor(key: Uint8Array, accountId: string, cursor: LogCursor): string {
  const { order, window, after } = cursor
  const fields: Payload = [FORMAT, order, window.from, window.to, after.createdAt, after.id]
  const text = Buffer.from(JSON.stringify(fields)).toString('base64url')
  return `${text}.${sign(key, accountId, text).toString('base64url')}`
}

/** Reads a cursor. Returns null for a token that was not signed here, for this account, in this form. */
export function parseCursor(key: Uint8Array, accountId: string, token: string): LogCursor | null {
  const [, text = '', signature = ''] = TOKEN.exec(token) ?? []
  const given = Buffer.from(signature, 'base64url')
  if (given.length !== SIGNATURE_BYTES || given.toString('base64url') !== signature) return null
  if (!timingSafeEqual(given, sign(key, accountId, text))) return null
  // The signature is valid: `printCursor` wrote the text, in this format or in an earlier one.
  const payload: Payload = JSON.parse(Buffer.from(text, 'base64url').toString())
  const [format, order, from, to, createdAt, id] = payload
  return format === FORMAT ? { order, window: { from, to }, after: { createdAt, id } } : null
}
