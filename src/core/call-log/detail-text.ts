/**
 * Builds a call's detail as JSON text from pieces: it is written for every call, and only the pieces that the client
 * chose are kept of its request. `schemas/call-log/call-detail.ts` describes the names.
 */
import {
  CALL_DETAIL_FIELDS,
  type CallDetail,
  type LinesKey,
  type NumberKey,
  type TextKey,
} from '../../../schemas/call-log/call-detail.ts'
import { shorten } from '../json/cut.ts'

/** A longer text of the client's is cut: a beginning is enough to recognise it. */
export const DETAIL_TEXT_MAX_CHARS = 64

const PLAIN = /^[\w.:/ -]*$/

/** Returns `,"temperature":0.7`; an empty text for a value that is no number. */
export const printNumber = (key: NumberKey, value: unknown): string =>
  typeof value === 'number' && Number.isFinite(value) ? `,"${key}":${value}` : ''

/** Returns `,"reasoning_effort":"high"`; an empty text for a value that is no text, or an empty one. Cuts a longer one. */
export function printText(key: TextKey, value: unknown, maxChars: number = DETAIL_TEXT_MAX_CHARS): string {
  if (typeof value !== 'string' || value === '') return ''
  const kept = shorten(value, maxChars)
  return PLAIN.test(kept) ? `,"${key}":"${kept}"` : `,"${key}":${JSON.stringify(kept)}`
}

/** Returns the length of a list; an empty text for a value that is no list. */
export const countPiece = (key: NumberKey, list: unknown): string =>
  Array.isArray(list) ? `,"${key}":${list.length}` : ''

/** Returns names and values for display; an empty text without any. */
export const printLines = (key: LinesKey, lines: readonly (readonly [string, string])[]): string =>
  lines.length === 0 ? '' : `,"${key}":${JSON.stringify(lines)}`

/** Returns a piece whose value is JSON already. */
export const printJson = (key: keyof CallDetail, json: string): string => `,"${key}":${json}`

/**
 * Returns the object of the pieces; null without any.
 * @param more pieces after the first ones: they are not copied to remove their first comma
 */
export const joinDetail = (pieces: string, more = ''): string | null =>
  pieces === '' ? null : `{${pieces.slice(1)}${more}}`

/**
 * Reads a stored detail; empty for a row without one. A value of the wrong form counts as absent: a row stays readable,
 * whichever version of the gateway wrote it.
 */
export function readDetail(text: string | null): CallDetail {
  const stored = text === null ? {} : parseDetail(text)
  const read = Object.entries(CALL_DETAIL_FIELDS).flatMap(([key, schema]) => {
    const { success, data } = schema.safeParse(stored[key])
    return success ? [[key, data] as const] : []
  })
  return Object.fromEntries(read)
}

function parseDetail(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}
