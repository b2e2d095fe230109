/** Reads an upstream's error body in any of the usual shapes. See docs/errors.md, "Errors of an upstream". */
import type { Buffer } from 'node:buffer'
import { plainErrorText } from '../../core/call-log/plain-error.ts'
import { cutText } from '../../core/json/cut.ts'
import { isTooDeep } from '../../core/json/exact.ts'

/** Further fields of an upstream's error: the client gets them beside the message. */
export interface ErrorExtras {
  /** The parameter that it names as the offence, in its field for that. */
  readonly param?: string
  /** Structured facts, such as when another try makes sense. */
  readonly details?: unknown
}

/** Text of an upstream's error body. */
interface ErrorText {
  readonly message: string
  /** The parameter that it names as the offence, in any field. */
  readonly parameter: string | null
  /** The names that it gives the error: its code, its type and its status. */
  readonly names: readonly unknown[]
  readonly extras: ErrorExtras
  /** It is no JSON: as much of it is shown as of a message in the call log. */
  readonly isPlain?: boolean
}

const MAX_MESSAGE_CHARS = 4000
/** Longer details are left out: they may quote the request. */
const MAX_DETAILS_CHARS = 16_384
const NO_NAMES: readonly unknown[] = []
const NO_EXTRAS: ErrorExtras = {}

type Json = Record<string, unknown>
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null
const readText = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

/** One problem in the list of FastAPI's validation errors: `{loc: ["body", field, ...], msg}`. */
interface ValidationProblem {
  readonly parameter: string
  readonly message: string
}

function validationProblem(value: unknown): ValidationProblem | null {
  if (!isObject(value) || !Array.isArray(value.loc)) return null
  const path = value.loc[0] === 'body' ? value.loc.slice(1) : value.loc
  const parameter = path.join('.')
  return { parameter, message: `${parameter}: ${readText(value.msg) ?? 'invalid'}` }
}

/** Returns the problems of a validation list, or null for any other value. Several parameters are named together. */
function validationProblems(value: unknown): ErrorText | null {
  if (!Array.isArray(value)) return null
  const problems = value.map(validationProblem).filter((problem) => problem !== null)
  if (problems.length === 0) return null
  return {
    message: problems.map(({ message }) => message).join('; '),
    parameter: [...new Set(problems.map(({ parameter }) => parameter))].join(', '),
    names: NO_NAMES,
    extras: NO_EXTRAS,
  }
}

/** Returns what an error object says besides its message. */
function readExtras({ param, details }: Json): ErrorExtras {
  const named = readText(param)
  const isKept = isObject(details) && JSON.stringify(details).length <= MAX_DETAILS_CHARS
  return { ...(named !== null && { param: named }), ...(isKept && { details }) }
}

function readErrorText(value: Json): ErrorText | null {
  const outcome = isObject(value.base_resp) ? value.base_resp.status_msg : undefined
  const error = value.error ?? value.message ?? value.msg ?? value.detail ?? outcome
  const detail = isObject(error) && !Array.isArray(error) ? error.detail : error
  const validation = validationProblems(detail)
  if (validation !== null) return validation
  const message = readText(isObject(error) ? error.message : error)
  if (message === null) return null
  // The error itself, where it is not in a field of its own.
  const named = isObject(error) ? error : value
  const { code, type, status } = named
  return {
    message,
    parameter: isObject(error) ? readText(error.param) : null,
    names: [code, type, status],
    extras: readExtras(named),
  }
}

/** Returns the JSON of an error body; undefined for another text, or one that nests too deep. */
function parseJson(body: Buffer): unknown {
  const text = body.toString('utf8')
  if (isTooDeep(text)) return undefined
  try {
    const parsed = JSON.parse(text) as unknown
    // Streams that are one JSON array hold their errors so too.
    return Array.isArray(parsed) ? (parsed[0] ?? null) : parsed
  } catch {
    return undefined
  }
}

/** Returns the text of an error body. Returns null when the body is not JSON, or in no known shape. */
export function readBodyText(body: Buffer): ErrorText | null {
  const value = parseJson(body)
  const text = isObject(value) ? readErrorText(value) : null
  return text && { ...text, message: cutText(text.message, MAX_MESSAGE_CHARS) }
}

/** Returns an error body with what protocols have in it, `error` and its `type`; null for a body without an error object. */
export function readErrorObject(body: Buffer): Json | null {
  const value = parseJson(body)
  if (!isObject(value) || !isObject(value.error) || Array.isArray(value.error)) return null
  const { type, error } = value
  return { ...(type === 'error' && { type }), error }
}

/** Reads the body of an error status; one without a text is described by `otherwise`. */
export function readErrorBody(body: Buffer, otherwise: string): ErrorText {
  const json = readBodyText(body)
  if (json !== null) return json
  const value = parseJson(body)
  const text = value === undefined ? plainErrorText(body) : readText(value)
  const plain = { parameter: null, names: NO_NAMES, extras: NO_EXTRAS }
  return text === null ? { ...plain, message: otherwise } : { ...plain, message: text, isPlain: true }
}
