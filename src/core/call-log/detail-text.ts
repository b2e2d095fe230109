/**
 * A call's detail as JSON text, put together piece by piece: it is written for every call, and the pieces that the
 * client chose are all that has to be kept of its request. `schemas/call-log/call-detail.ts` says what the names mean.
 */
import {
  CALL_DETAIL_FIELDS,
  type CallDetail,
  type LinesKey,
  type NumberKey,
  type TextKey,
} from '../../../schemas/call-log/call-detail.ts'
import { withNames } from './former-detail.ts'

/** A longer text of the client's is cut: it is there to be recognised. */
export const DETAIL_TEXT_MAX_CHARS = 64

const PLAIN = /^[\w.:/ -]*$/

/** `,"temperature":0.7`; nothing for what is no number. */
export const numberPiece = (key: NumberKey, value: unknown): string =>
  typeof value === 'number' && Number.isFinite(value) ? `,"${key}":${value}` : ''

/** `,"reasoning_effort":"high"`; nothing for what is no text, or an empty one. */
export function textPiece(key: TextKey, value: unknown, maxChars: number = DETAIL_TEXT_MAX_CHARS): string {
  if (typeof value !== 'string' || value === '') return ''
  if (value.length > maxChars) return `,"${key}":${JSON.stringify(`${value.slice(0, maxChars)}…`)}`
  return PLAIN.test(value) ? `,"${key}":"${value}"` : `,"${key}":${JSON.stringify(value)}`
}

/** How many there are; nothing for what is no list. */
export const countPiece = (key: NumberKey, list: unknown): string =>
  Array.isArray(list) ? `,"${key}":${list.length}` : ''

/** Names and values, as they are shown; nothing where there are none. */
export const linesPiece = (key: LinesKey, lines: readonly (readonly [string, string])[]): string =>
  lines.length === 0 ? '' : `,"${key}":${JSON.stringify(lines)}`

/** A value that is JSON already. */
export const jsonPiece = (key: keyof CallDetail, json: string): string => `,"${key}":${json}`

/**
 * The whole of what the pieces say; undefined where they say nothing.
 * @param more what follows the first pieces, where there are any: it is not copied for the sake of their first comma
 */
export const detailText = (pieces: string, more = ''): string | undefined =>
  pieces === '' ? undefined : `{${pieces.slice(1)}${more}}`

/**
 * Reads a stored detail; empty for a row from before details were kept. What is not as it should be counts as left out: a
 * row stays readable whatever an older or newer gateway wrote.
 */
export function readDetail(text: string): CallDetail {
  const stored = withNames(parsed(text))
  const read = Object.entries(CALL_DETAIL_FIELDS).flatMap(([key, schema]) => {
    const { success, data } = schema.safeParse(stored[key])
    return success ? [[key, data] as const] : []
  })
  return Object.fromEntries(read)
}

function parsed(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}
