/** Directives, with which a caller says what the simulated provider does. One grammar for every place. */

import { SSE_VARIATIONS } from '../answers/sse.ts'
import { isObject } from '../dialect.ts'
import { parseFault } from './faults.ts'

const MAX_WAIT_MS = 600_000
const MAX_TOKENS_PER_SECOND = 100_000
const MAX_TOKENS = 200_000
const MAX_COUNTED_TOKENS = 1_000_000_000
const MAX_SEED = 2 ** 32 - 1
const MAX_TOOL_CALLS = 32
const MAX_SEARCHES = 16
const MAX_IMAGES = 8
const MAX_ADVICE = 1_000
const MAX_WORD_CHARACTERS = 64
const MAX_PIECE_BYTES = 1_000_000
const MAX_TIMES = 1_000_000
const MAX_RETRY_AFTER_SECONDS = 86_400
const MAX_TASK_MS = 7 * 86_400_000
const MAX_RESULTS = 10
const MAX_RESULT_SECONDS = 600
const MAX_SIDE_PIXELS = 4_096

const USAGE_MODES = ['asked', 'always', 'none', 'zero', 'early', 'with_finish'] as const
const USAGE_FORMS = ['deepseek', 'groq', 'xai'] as const
const USAGE_FAULTS = ['negative', 'cached_above', 'falling'] as const
const OUTCOMES = [
  'success',
  'fail',
  'moderation',
  'expire',
  'cancel',
  'unknown_state',
  'stuck',
  'refuse',
] as const

/** The reader of each directive's value, which throws a `RangeError` that says what it takes. */
const GRAMMAR = {
  ttft: wholeNumber(0, MAX_WAIT_MS),
  tps: wholeNumber(0, MAX_TOKENS_PER_SECOND),
  pause: wholeNumber(0, MAX_WAIT_MS),
  linger: wholeNumber(0, MAX_WAIT_MS),
  tokens: wholeNumber(0, MAX_TOKENS),
  text: (value: string) => value,
  talk: flag,
  seed: wholeNumber(0, MAX_SEED),
  prompt_tokens: wholeNumber(0, MAX_COUNTED_TOKENS),
  cached: wholeNumber(0, MAX_COUNTED_TOKENS),
  cache_write: wholeNumber(0, MAX_COUNTED_TOKENS),
  cache_write_1h: wholeNumber(0, MAX_COUNTED_TOKENS),
  input_audio: wholeNumber(0, MAX_COUNTED_TOKENS),
  input_image: wholeNumber(0, MAX_COUNTED_TOKENS),
  output_audio: wholeNumber(0, MAX_COUNTED_TOKENS),
  output_image: wholeNumber(0, MAX_COUNTED_TOKENS),
  service_tier: word,
  reasoning: wholeNumber(0, MAX_TOKENS),
  reasoning_text: flag,
  reasoning_sealed: flag,
  tool_calls: wholeNumber(0, MAX_TOOL_CALLS),
  calls: parseNamedCalls,
  searches: wholeNumber(0, MAX_SEARCHES),
  images: wholeNumber(0, MAX_IMAGES),
  advice: wholeNumber(0, MAX_ADVICE),
  declined: wholeNumber(0, MAX_TOKENS),
  refused: flag,
  other_model: identifier,
  strict_input: flag,
  usage: parseWord(USAGE_MODES),
  usage_form: parseWord(USAGE_FORMS),
  usage_fault: parseWord(USAGE_FAULTS),
  fault: parseFault,
  times: wholeNumber(1, MAX_TIMES),
  retry_after: wholeNumber(0, MAX_RETRY_AFTER_SECONDS),
  sse: parseSeveral(SSE_VARIATIONS),
  split: wholeNumber(1, MAX_PIECE_BYTES),
  tag: (value: string) => value,
  delay: wholeNumber(0, MAX_TASK_MS),
  queue: wholeNumber(0, MAX_TASK_MS),
  outcome: parseWord(OUTCOMES),
  code: word,
  id: identifier,
  partial: wholeNumber(0, MAX_RESULTS),
  seconds: decimalSeconds,
  input_seconds: decimalSeconds,
  no_seconds: flag,
  size: pixelSize,
  poll_fault: faultText,
  file_fault: faultText,
} as const satisfies Record<string, (value: string) => unknown>

/** Directives that are short for another one with a value. */
const SHORTHANDS: Readonly<Record<string, readonly [keyof typeof GRAMMAR, string]>> = {
  accept_then_cut: ['fault', 'accept_then_cut'],
}

type DirectiveName = keyof typeof GRAMMAR
export type Directives = { readonly [Name in DirectiveName]?: ReturnType<(typeof GRAMMAR)[Name]> }
export type UsageMode = (typeof USAGE_MODES)[number]
export type UsageForm = (typeof USAGE_FORMS)[number]
export type Outcome = (typeof OUTCOMES)[number]

export const DIRECTIVE_NAMES = Object.keys(GRAMMAR) as DirectiveName[]

/** A tool to call, and its input. */
type NamedCall = readonly [name: string, input: object]
export type PixelSize = { readonly widthPixels: number; readonly heightPixels: number }

/** An unknown directive, or an invalid value. The message names it. */
export class DirectiveError extends Error {}

/** Splits a model name at the first `@` into the model and its directives. */
export function splitModelName(name: string): { model: string; directives: string | null } {
  const at = name.indexOf('@')
  return at < 0
    ? { model: name, directives: null }
    : { model: name.slice(0, at), directives: name.slice(at + 1) }
}

/**
 * Reads directives from a string (`ttft=50, tps=100; fault=reset:120`, values percent-encoded, a flag may stand
 * alone) or from an object (`{"ttft": 50}`, values literal). Null and undefined hold none.
 *
 * @throws {DirectiveError}
 */
export function readDirectives(source: unknown): Directives {
  if (source === null || source === undefined) return {}
  if (typeof source === 'string') return readEntries(entriesOfString(source))
  if (typeof source === 'object' && !Array.isArray(source)) return readEntries(entriesOfObject(source))
  throw new DirectiveError('Directives are a string or an object.')
}

/** Merges directives; of the same directive the later wins. */
export function mergeDirectives(...all: readonly Directives[]): Directives {
  return Object.assign({}, ...all)
}

function* entriesOfString(source: string): Iterable<[string, string]> {
  for (const part of source.split(/[,;]/)) {
    const item = part.trim()
    if (item === '') continue
    const equals = item.indexOf('=')
    const name = (equals < 0 ? item : item.slice(0, equals)).trim()
    yield [name, equals < 0 ? 'true' : decode(name, item.slice(equals + 1).trim())]
  }
}

function* entriesOfObject(source: object): Iterable<[string, string]> {
  for (const [name, value] of Object.entries(source)) {
    if (!['string', 'number', 'boolean'].includes(typeof value)) {
      throw new DirectiveError(`The directive "${name}" takes a string, a number or a boolean.`)
    }
    yield [name, String(value)]
  }
}

function readEntries(entries: Iterable<[string, string]>): Directives {
  const read: Record<string, unknown> = {}
  for (const [name, given] of entries) {
    const shorthand = given === 'true' && Object.hasOwn(SHORTHANDS, name) ? SHORTHANDS[name] : undefined
    const [known, value] = shorthand ?? [name, given]
    if (!isDirectiveName(known)) throw new DirectiveError(`There is no directive "${name}".`)
    try {
      read[known] = GRAMMAR[known](value)
    } catch (error) {
      if (error instanceof RangeError) throw new DirectiveError(`The directive "${name}" ${error.message}.`)
      throw error
    }
  }
  return read
}

function isDirectiveName(name: string | undefined): name is DirectiveName {
  return name !== undefined && Object.hasOwn(GRAMMAR, name)
}

function decode(name: string, value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    throw new DirectiveError(`The value of the directive "${name}" is not percent-encoded UTF-8.`)
  }
}

function wholeNumber(min: number, max: number): (value: string) => number {
  return (value) => {
    const number = Number(value)
    if (!/^\d{1,10}$/.test(value) || number < min || number > max) {
      throw new RangeError(`takes a whole number from ${min} to ${max}, not "${value}"`)
    }
    return number
  }
}

function word(value: string): string {
  if (/^[A-Za-z_]+$/.test(value) && value.length <= MAX_WORD_CHARACTERS) return value
  throw new RangeError(`takes a word of letters and underscores, not "${value}"`)
}

function flag(value: string): boolean {
  if (value !== 'true' && value !== 'false') throw new RangeError(`takes true or false, not "${value}"`)
  return value === 'true'
}

function parseNamedCalls(value: string): readonly NamedCall[] {
  const problem = new RangeError('takes a JSON array of [name, input] pairs')
  let calls: unknown
  try {
    calls = JSON.parse(value)
  } catch {
    throw problem
  }
  const isCall = (call: unknown) => Array.isArray(call) && typeof call[0] === 'string' && isObject(call[1])
  if (!Array.isArray(calls) || !calls.every(isCall)) throw problem
  return calls
}

function parseWord<const Name extends string>(names: readonly Name[]): (value: string) => Name {
  return (value) => {
    const found = names.find((name) => name === value)
    if (found === undefined) throw new RangeError(`is one of ${names.join(', ')}, not "${value}"`)
    return found
  }
}

function parseSeveral<const Name extends string>(names: readonly Name[]): (value: string) => readonly Name[] {
  return (value) => value.split('+').map(parseWord(names))
}

function identifier(value: string): string {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(value)) return value
  throw new RangeError(`takes up to 64 letters, digits, hyphens and underscores, not "${value}"`)
}

function decimalSeconds(value: string): number {
  const seconds = Number(value)
  if (/^\d{1,4}(\.\d{1,3})?$/.test(value) && seconds > 0 && seconds <= MAX_RESULT_SECONDS) return seconds
  throw new RangeError(`takes seconds above 0, up to ${MAX_RESULT_SECONDS}, not "${value}"`)
}

function pixelSize(value: string): PixelSize {
  const [, width, height] = /^(\d{1,4})x(\d{1,4})$/.exec(value) ?? []
  const size = { widthPixels: Number(width), heightPixels: Number(height) }
  const isDrawn = (side: number) => side >= 1 && side <= MAX_SIDE_PIXELS
  if (isDrawn(size.widthPixels) && isDrawn(size.heightPixels)) return size
  throw new RangeError(`takes a size as in 1024x768, up to ${MAX_SIDE_PIXELS} a side, not "${value}"`)
}

/** Checks a fault that strikes later, and keeps it as written. */
function faultText(value: string): string {
  parseFault(value)
  return value
}

const MESSAGE_DIRECTIVES = /\[simulate:([^\]]*)\]/

/** Returns the text of a message without directives. Parts that have no `text` say nothing. */
export function readText(content: unknown): string {
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content]
  const texts = parts.map((part) => (isObject(part) ? part.text : part))
  const said = texts.filter((text) => typeof text === 'string').join(' ')
  return said.replace(MESSAGE_DIRECTIVES, '').replace(/\s+/g, ' ').trim()
}

/** Where the parts of messages, and the results of tools, have their text. */
const TEXT_FIELDS = ['text', 'content', 'output', 'parts', 'functionResponse', 'response']

/** Returns the directives in what came after the last turn of the model, results of tools included; null without any. */
export function findDirectives(
  turns: readonly unknown[],
  isModels: (turn: unknown) => boolean,
): string | null {
  const since = turns.slice(turns.findLastIndex(isModels) + 1)
  return since.toReversed().map(findInContent).find(Boolean) ?? null
}

/** Returns the first directives in a text, in parts, or in an object with either. */
function findInContent(content: unknown): string | null {
  if (typeof content === 'string') return MESSAGE_DIRECTIVES.exec(content)?.[1] ?? null
  if (Array.isArray(content)) return content.map(findInContent).find(Boolean) ?? null
  return isObject(content) ? findInContent(TEXT_FIELDS.map((field) => content[field])) : null
}
