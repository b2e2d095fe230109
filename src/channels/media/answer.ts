/** Reading what upstreams of media answer: loosely, and without ever throwing. */
import { z } from 'zod'
import { plainErrorText } from '../../core/call-log/plain-error.ts'
import { redact } from '../../core/call-log/redact.ts'
import { isTooDeep } from '../../core/json/exact.ts'
import type { MediaAnswer, PollOutcome, Refused, SubmitOutcome } from './adapter.ts'

const MAX_MESSAGE_CHARS = 4000
/** Eleven days: longer than anything lasts, and its price fits every column. */
const MAX_SECONDS = 1e6
const MAX_ID_CHARS = 200

const BYTE_ORDER_MARK = /^\ufeff/

/** Returns the JSON of an answer; undefined for another text, or one that nests too deep. */
export function parseAnswer(answer: MediaAnswer): unknown {
  const text = answer.body.toString('utf8').replace(BYTE_ORDER_MARK, '')
  if (isTooDeep(text)) return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

export const isSuccess = (answer: MediaAnswer): boolean => answer.status >= 200 && answer.status < 300

/** Whatever it is, or nothing. */
export const anything = z.unknown().optional()

/** Returns text for PostgreSQL, which stores neither NUL nor half a character; an upstream may send both. */
const cleanText = (text: string): string => text.replaceAll('\0', '').toWellFormed()

/** A text, empty ones too. */
export const anyText = z.string().transform(cleanText)

/** A text, or null for anything else. */
export const looseText = anyText
  .transform((text) => (text === '' ? null : text))
  .nullable()
  .catch(null)
  .default(null)

const MAX_WORD_CHARS = 100

/** An upstream's own word for a state; null for anything else. */
export const looseWord = looseText.transform((text) => text && cleanText(text.slice(0, MAX_WORD_CHARS)))

/** A count or length, given as a number or in digits; null for anything else. */
export const looseNumber = z
  .union([
    z.number(),
    z
      .string()
      .regex(/^\d+(\.\d+)?$/)
      .transform(Number),
  ])
  .refine((value) => Number.isFinite(value) && value >= 0)
  .nullable()
  .catch(null)
  .default(null)

/** Seconds, or a count of frames; null for none. */
export const looseSeconds = looseNumber.transform((value) =>
  value !== null && value > 0 ? Math.min(value, MAX_SECONDS) : null,
)

/** Pixels along one edge. */
export const loosePixels = looseNumber.transform((value) =>
  value !== null && Number.isSafeInteger(value) && value > 0 ? value : null,
)

/** A list of anything; an empty one for anything else. */
export const looseList = z.array(z.unknown()).catch([]).default([])

/** An id that fits a URL. */
const idText = z
  .string()
  .max(MAX_ID_CHARS)
  .regex(/^[\x21-\x7e]+$/)
  .refine((text) => !/^\.+$/.test(text))
export const looseId = z
  .union([idText, z.int().min(0).transform(String)])
  .nullable()
  .catch(null)
  .default(null)

type Fields = Readonly<Record<string, unknown>>
export const toFields = (value: unknown): Fields | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null

/** Returns the fields of the JSON object in an answer; null for any other body. */
export const readFields = (answer: MediaAnswer): Fields | null => toFields(parseAnswer(answer))

/** Returns the text of an error from the first known place that has one. */
function findText(value: unknown, depth = 0): string | null {
  if (typeof value === 'string') return value.trim() === '' ? null : value
  if (depth > 3) return null
  if (Array.isArray(value)) return findText(value[0], depth + 1)
  const fields = toFields(value)
  if (fields === null) return null
  for (const name of ['error', 'message', 'msg', 'detail', 'errors', 'error_message', 'errorMessage']) {
    const text = findText(fields[name], depth + 1)
    if (text !== null) return text
  }
  return null
}

export const clipMessage = (text: string): string => cleanText(text.slice(0, MAX_MESSAGE_CHARS))

/** Returns the text inside an error in any known shape. */
export const readMessage = (value: unknown, otherwise: string): string =>
  clipMessage(findText(value) ?? otherwise)

const describeStatus = (status: number): string => `The upstream answered with status ${status}.`

/** Returns a refusal for an answer that is no success; statuses that do not describe a refusal become `otherwise`. */
export function readPlainRefusal(answer: MediaAnswer, otherwise: number): Refused {
  const status = answer.status >= 400 && answer.status <= 599 ? answer.status : otherwise
  const json = parseAnswer(answer)
  const plain = json === undefined ? plainErrorText(answer.body) : null
  const message = readMessage(json, plain === null ? describeStatus(answer.status) : redact(plain))
  return { type: 'refused', status, message }
}

/** The status of a refusal that is about the credit of the operator's account. */
export const PAYMENT_REQUIRED = 402

export const makeRefused = (status: number, message: string): Refused => ({
  type: 'refused',
  status,
  message: clipMessage(message),
})

/** Returns a failed submit; where the operator's account has no credit, under the status that says so. */
export const markUsedUp = <Outcome extends SubmitOutcome>(
  isUsedUp: boolean,
  outcome: Outcome,
): Outcome | Refused =>
  isUsedUp && outcome.type === 'refused' ? makeRefused(PAYMENT_REQUIRED, outcome.message) : outcome

/** Returns an accepted submit. `running` is the upstream's word for a task that it works on. */
export const makeAccepted = (upstreamId: string, upstreamState: string, running?: string): SubmitOutcome => ({
  type: 'accepted',
  upstreamId,
  isRunning: upstreamState === running,
  upstreamState,
})

export const makeUnknown = (reason: string): SubmitOutcome => ({
  type: 'unknown',
  reason: clipMessage(reason),
})

/** Statuses of proxies in front of an upstream that may be at work. */
const PROXY_STATUSES: ReadonlySet<number> = new Set([408, 502, 504])

/**
 * Reads a failed submit of an asynchronous upstream: only its own text proves that no work was accepted. A redirect is
 * not followed, so no task exists.
 */
export function readAsyncRefusal(answer: MediaAnswer): SubmitOutcome {
  const { status } = answer
  const isMute = status >= 500 && findText(parseAnswer(answer)) === null
  if (status < 300 || PROXY_STATUSES.has(status) || isMute) return makeUnknown(describeStatus(status))
  return readPlainRefusal(answer, 500)
}

/** Returns a failed poll for the log. */
export const pollError = (answer: MediaAnswer) =>
  ({ type: 'error', reason: readMessage(parseAnswer(answer), describeStatus(answer.status)) }) as const

/** A state without more to say, or what reads the outcome; it gets the upstream's word. */
type Reading = 'queued' | 'running' | 'cancelled' | 'lapsed' | ((upstreamState: string) => PollOutcome)

/** Returns the outcome of a poll by the upstream's word for the state; without one, the poll has failed. */
export function chooseOutcome(
  answer: MediaAnswer,
  upstreamState: string | null,
  words: Readonly<Record<string, Reading>>,
): PollOutcome {
  if (upstreamState === null) return pollError(answer)
  const reading = Object.hasOwn(words, upstreamState) ? words[upstreamState]! : 'unmapped'
  return typeof reading === 'function' ? reading(upstreamState) : { type: reading, upstreamState }
}
