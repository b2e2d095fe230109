/**
 * Reads the few facts a meter needs out of one chat-completions chunk (or one whole response) in a single pass
 * over its bytes: no string is built and nothing is parsed but the usage object itself.
 */
import { Buffer } from 'node:buffer'
import { hexDigit, skipSpace, skipString, skipValue } from '../../core/json/fields.ts'
import { LATER_BYTE_CHARACTERS, weightOfCodeUnit } from '../../core/pricing/text-tokens.ts'
import { isFailedOutcome } from '../answer/content.ts'
import { equals, FieldCursor } from '../answer/field-cursor.ts'
import { parsedFields } from '../loose.ts'

const QUOTE = 0x22
const ZERO = 0x30
const BACKSLASH = 0x5c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const LETTER_F = 0x66
const LETTER_N = 0x6e
const LETTER_U = 0x75
const UNICODE_ESCAPE_CHARS = 6

/** Keys whose string values are output, by their length. */
const SPOKEN: ReadonlyArray<readonly Buffer[]> = byLength(
  ['content', 'reasoning_content', 'reasoning', 'refusal', 'arguments'].map((key) => Buffer.from(key)),
)

function byLength(words: readonly Buffer[]): Buffer[][] {
  const longest = Math.max(...words.map((word) => word.length))
  return Array.from({ length: longest + 1 }, (_, length) => words.filter((word) => word.length === length))
}

const USAGE = Buffer.from('usage')
const CHOICES = Buffer.from('choices')
const MODEL = Buffer.from('model')
const SERVICE_TIER = Buffer.from('service_tier')
const ERROR = Buffer.from('error')
const FINISH = Buffer.from('finish_reason')
const FILTERED = Buffer.from('content_filter')
const OUTCOME = Buffer.from('base_resp')
const CODE = Buffer.from('code')
/** Fields of an error's text next to a code, where there is no error object. */
const ERROR_TEXTS = ['message', 'msg'].map((key) => Buffer.from(key))
/** Keys whose lists and objects are content. */
const CONTENT = byLength(
  ['content', 'tool_calls', 'function_call', 'audio', 'images'].map((key) => Buffer.from(key)),
)

/** The facts. Places are indexes into the scanned bytes; -1 where there is none. */
export interface ChunkFacts {
  /** Characters of text, reasoning, refusal and tool arguments, weighed by script. */
  characters: number
  usageStart: number
  usageEnd: number
  /** Usage that an object inside the chunk has: a choice, or a provider's own field. */
  innerUsageStart: number
  innerUsageEnd: number
  /** The service tier, without its quotes. */
  tierStart: number
  tierEnd: number
  /** The model's name, without its quotes. */
  modelStart: number
  modelEnd: number
  /** True when `choices` exists and is not empty. */
  hasChoices: boolean
  /** True for a top-level `error` with a value, or another of the forms in which upstreams report a failure. */
  isError: boolean
  hasFinish: boolean
  /** True for content that is no string of output, or a finish reason of a filter. */
  hasOtherContent: boolean
  /** Number of output strings, and the place of the last one, without its quotes. */
  spoken: number
  spokenStart: number
  spokenEnd: number
}

export const newChunkFacts = (): ChunkFacts => ({
  characters: 0,
  usageStart: -1,
  usageEnd: -1,
  innerUsageStart: -1,
  innerUsageEnd: -1,
  tierStart: -1,
  tierEnd: -1,
  modelStart: -1,
  modelEnd: -1,
  hasChoices: false,
  isError: false,
  hasFinish: false,
  hasOtherContent: false,
  spoken: 0,
  spokenStart: -1,
  spokenEnd: -1,
})

function isAmong(
  byLength: ReadonlyArray<readonly Buffer[]>,
  bytes: Buffer,
  start: number,
  end: number,
): boolean {
  const words = byLength[end - start]
  if (words === undefined) return false
  for (let i = 0; i < words.length; i++) if (equals(bytes, start, end, words[i]!)) return true
  return false
}

/** Returns the code unit of the `\u` escape that begins at `at`. */
function escapedUnit(bytes: Buffer, at: number): number {
  let unit = 0
  for (let i = at + 2; i < at + UNICODE_ESCAPE_CHARS; i++) unit = unit * 16 + hexDigit(bytes[i]!)
  return unit
}

/**
 * Returns the characters of the JSON string body in `bytes[start, end)`, weighed by script, each escape counted as its
 * character.
 */
export function countCharacters(bytes: Buffer, start: number, end: number): number {
  let count = 0
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!
    if (byte === BACKSLASH) {
      const isUnicode = bytes[i + 1] === LETTER_U
      count += isUnicode ? weightOfCodeUnit(escapedUnit(bytes, i)) : 1
      i += isUnicode ? UNICODE_ESCAPE_CHARS - 1 : 1
    } else count += (byte & 0xc0) === 0x80 ? LATER_BYTE_CHARACTERS : 1
  }
  return count
}

/** Returns true for a value other than null, false, 0 and any empty value. */
export function saysSomething(bytes: Buffer, at: number): boolean {
  const first = bytes[at]
  if (first === QUOTE) return bytes[at + 1] !== QUOTE
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET)
    return first !== LETTER_N && first !== LETTER_F && first !== ZERO
  const next = bytes[skipSpace(bytes, at + 1)]
  return next !== CLOSE_BRACE && next !== CLOSE_BRACKET
}

/** Reads the top-level field whose value begins at `at`. Returns the index to continue at. */
function topLevel(bytes: Buffer, name: number, nameEnd: number, at: number, facts: ChunkFacts): number {
  if (equals(bytes, name, nameEnd, USAGE)) {
    const end = skipValue(bytes, at)
    if (bytes[at] === OPEN_BRACE) {
      facts.usageStart = at
      facts.usageEnd = end
    }
    return end
  }
  if (equals(bytes, name, nameEnd, ERROR)) {
    facts.isError ||= saysSomething(bytes, at)
    return skipValue(bytes, at)
  }
  if (equals(bytes, name, nameEnd, CHOICES) && bytes[at] === OPEN_BRACKET)
    facts.hasChoices = saysSomething(bytes, at)
  else if (equals(bytes, name, nameEnd, OUTCOME)) {
    const end = skipValue(bytes, at)
    facts.isError ||= isFailedOutcome(parsedFields(bytes.toString('utf8', at, end)))
    return end
  } else if (bytes[at] === QUOTE && equals(bytes, name, nameEnd, MODEL)) {
    facts.modelStart = at + 1
    facts.modelEnd = skipString(bytes, at) - 1
  } else if (bytes[at] === QUOTE && equals(bytes, name, nameEnd, SERVICE_TIER)) {
    facts.tierStart = at + 1
    facts.tierEnd = skipString(bytes, at) - 1
  }
  return at
}

/** Returns whether a chunk without choices and usage reports a failure, by a code and a text at its top level. */
function saysCode(bytes: Buffer): boolean {
  let [hasCode, hasText] = [false, false]
  fields.enter(bytes, skipSpace(bytes, 0))
  while (fields.next()) {
    if (fields.is(CODE)) hasCode = saysSomething(bytes, fields.start)
    else if (ERROR_TEXTS.some((text) => fields.is(text))) hasText = fields.isString
  }
  return hasCode && hasText
}
const fields = new FieldCursor()

/** Reads the field below the top level whose value begins at `at`. Returns the index to continue at. */
function nested(bytes: Buffer, name: number, nameEnd: number, at: number, facts: ChunkFacts): number {
  if (bytes[at] !== QUOTE) {
    if (bytes[at] === OPEN_BRACE || bytes[at] === OPEN_BRACKET)
      facts.hasOtherContent ||= isAmong(CONTENT, bytes, name, nameEnd) && saysSomething(bytes, at)
    if (bytes[at] !== OPEN_BRACE || !equals(bytes, name, nameEnd, USAGE)) return at
    facts.innerUsageStart = at
    facts.innerUsageEnd = skipValue(bytes, at)
    return facts.innerUsageEnd
  }
  const end = skipString(bytes, at)
  if (isAmong(SPOKEN, bytes, name, nameEnd)) {
    facts.characters += countCharacters(bytes, at + 1, end - 1)
    facts.spoken++
    facts.spokenStart = at + 1
    facts.spokenEnd = end - 1
  } else if (end > at + 2 && equals(bytes, name, nameEnd, FINISH)) {
    // Some upstreams have an empty one in each chunk: it is no reason.
    facts.hasFinish = true
    facts.hasOtherContent ||= equals(bytes, at + 1, end - 1, FILTERED)
  }
  return end
}

/** Adds the facts of one JSON object to `facts`. Malformed JSON gives fewer facts, never an error or an endless loop. */
export function scanChunk(bytes: Buffer, facts: ChunkFacts): void {
  let depth = 0
  let i = 0
  while (i < bytes.length) {
    const byte = bytes[i]!
    if (byte !== QUOTE) {
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--
      i++
      continue
    }
    const name = i + 1
    const end = skipString(bytes, i)
    i = skipSpace(bytes, end)
    if (bytes[i] !== COLON) continue
    const value = skipSpace(bytes, i + 1)
    i =
      depth === 1 ? topLevel(bytes, name, end - 1, value, facts) : nested(bytes, name, end - 1, value, facts)
  }
  if (!facts.hasChoices && facts.usageStart < 0 && !facts.isError) facts.isError = saysCode(bytes)
}
