/** One whole, unstreamed answer of the chat-completions protocol: its usage, and whether it is an answer at all. */

import { Buffer } from 'node:buffer'
import { FieldFinder, scanJson, type Tape } from '../../core/json/scanner/tape.ts'
import type { TokenUsage } from '../../core/pricing/usage.ts'
import {
  answerFields,
  hasChoiceContent,
  isFailedOutcome,
  isWholeAnswer,
  saysError,
} from '../answer/content.ts'
import { readFacts } from '../answer/place-read.ts'
import { isOutputReported, toCounts, type UsageReport } from '../answer/reported-usage.ts'
import type { Metered } from '../dialect.ts'
import { type LooseObject, toFields, toList, toText } from '../loose.ts'
import { readUsage } from '../usage/chat-completions.ts'
import { findFault } from '../usage/faults.ts'
import { CHUNK } from './places.ts'

/** Levels whose fields are read: the answer, its usage, the details in that. */
const DEEPEST = 3

const ANSWER = new FieldFinder(['usage', 'error', 'base_resp', 'model', 'service_tier'])
const USAGE = new FieldFinder([
  'prompt_tokens',
  'completion_tokens',
  'total_tokens',
  'prompt_tokens_details',
  'completion_tokens_details',
  'server_tool_use',
])
const USAGE_PLACES = Object.values(USAGE.place)
const DETAILS = new FieldFinder([
  'cached_tokens',
  'cache_write_tokens',
  'cache_creation_input_tokens',
  'cache_creation',
  'reasoning_tokens',
  'audio_tokens',
  'image_tokens',
])

function detailsAt(tape: Tape, node: number): unknown {
  if (node === 0 || !tape.find(DETAILS, node)) return tape.readValue(node)
  const { place } = DETAILS
  return {
    cached_tokens: tape.foundValue(place.cached_tokens),
    cache_write_tokens: tape.foundValue(place.cache_write_tokens),
    cache_creation_input_tokens: tape.foundValue(place.cache_creation_input_tokens),
    cache_creation: tape.foundValue(place.cache_creation),
    reasoning_tokens: tape.foundValue(place.reasoning_tokens),
    audio_tokens: tape.foundValue(place.audio_tokens),
    image_tokens: tape.foundValue(place.image_tokens),
  }
}

/** Returns whether the object has other fields than those that were just found in it: some providers have their own. */
function hasOthers(tape: Tape, node: number): boolean {
  let fields = 0
  const end = tape.nodeAfter(node)
  for (let name = node + 1; name < end; name = tape.nodeAfter(name + 1)) fields++
  for (const place of USAGE_PLACES) if (tape.found(place) !== 0) fields--
  return fields > 0
}

function usageOn(tape: Tape, node: number): unknown {
  if (node === 0) return null
  if (!tape.find(USAGE, node) || hasOthers(tape, node)) return tape.readValue(node)
  const { place } = USAGE
  return {
    prompt_tokens: tape.foundValue(place.prompt_tokens),
    completion_tokens: tape.foundValue(place.completion_tokens),
    total_tokens: tape.foundValue(place.total_tokens),
    prompt_tokens_details: detailsAt(tape, tape.found(place.prompt_tokens_details)),
    completion_tokens_details: detailsAt(tape, tape.found(place.completion_tokens_details)),
    server_tool_use: tape.foundValue(place.server_tool_use),
  }
}

/** Returns true for a value other than null, false, 0 and any empty value. */
export function saysSomethingAt(tape: Tape, node: number): boolean {
  const holdsValues = tape.isText(node) || tape.isList(node) || tape.isObject(node)
  return holdsValues ? tape.isFull(node) : Boolean(tape.readValue(node))
}

interface ReadAnswer {
  readonly usage: unknown
  readonly serviceTier: string
  readonly model: string
  readonly isError: boolean
}

/** Returns null for an answer that is no object, or that readers could take differently. */
function answerOn(tape: Tape): ReadAnswer | null {
  if (!tape.find(ANSWER, 0)) return null
  const { place } = ANSWER
  return {
    model: toText(tape.foundValue(place.model)),
    serviceTier: toText(tape.foundValue(place.service_tier)),
    isError:
      saysSomethingAt(tape, tape.found(place.error)) || isFailedOutcome(tape.foundValue(place.base_resp)),
    usage: usageOn(tape, tape.found(place.usage)),
  }
}

/** Reads an answer that the tape does not have, or that is no JSON. */
function readByParser(body: Buffer): ReadAnswer {
  const answer = answerFields(body) ?? {}
  return {
    model: toText(answer.model),
    serviceTier: toText(answer.service_tier),
    isError: saysError(answer),
    usage: answer.usage,
  }
}

/** Counts its characters on demand: an answer with usage never needs them. */
export class WholeResponse implements Metered {
  readonly #report: UsageReport | null
  readonly usage: TokenUsage | null
  /** It is JSON that holds content or usage, and no error in spite of its status. */
  readonly isAnswer: boolean
  readonly model: string
  readonly serviceTier: string
  readonly suspect: string
  readonly reported: unknown
  readonly #body: Buffer

  constructor(body: Buffer, provider?: string) {
    this.#body = body
    const scanned = scanJson(body, DEEPEST, null, answerOn)
    const { usage, serviceTier, model, isError } = scanned ?? readByParser(body)
    const report = readUsage(usage, provider)
    this.#report = report
    this.usage = report && toCounts(report)
    this.suspect = report === null ? findFault(usage) : (report.contradiction ?? '')
    this.reported = usage
    this.serviceTier = serviceTier
    this.model = model
    const isReported = isOutputReported(report)
    // What is on the tape is JSON.
    const isReportedJson = isReported && scanned !== null
    this.isAnswer = !isError && (isReportedJson || isWholeAnswer(body, isReported, hasChoiceContent))
  }

  get isUsageWhole(): boolean {
    return this.#report !== null && this.#report.prompt !== null && this.#report.output !== null
  }

  get characters(): number {
    return readFacts(this.#body, CHUNK).characters
  }

  get charactersSinceUsage(): number {
    return this.#report?.output == null ? this.characters : 0
  }
}

const DONE = 'data: [DONE]\n\n'

/** Returns the message as one delta, in which calls of tools have their places. */
function toDelta(message: LooseObject): LooseObject {
  const { tool_calls: calls, ...rest } = message
  if (!Array.isArray(calls)) return rest
  return { ...rest, tool_calls: calls.map((call, index) => ({ index, ...toFields(call) })) }
}

/**
 * Prints a whole chat completion as the chunks of a stream, for an upstream that did not stream.
 * @param wantsUsage the client asked for the chunk with usage
 */
export function completionAsStream(body: Buffer, wantsUsage: boolean): Buffer {
  const { choices, usage, ...head } = answerFields(body) ?? {}
  const chunk = (more: LooseObject): string =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...more })}\n\n`
  const noUsage = wantsUsage ? { usage: null } : {}
  const whole = toList(choices).map(toFields)
  const said = whole.map(({ message, finish_reason: _, ...choice }) => ({
    ...choice,
    delta: toDelta(toFields(message)),
    finish_reason: null,
  }))
  const finished = whole.map(({ index, finish_reason }) => ({ index, delta: {}, finish_reason }))
  const ofUsage = wantsUsage && usage != null ? chunk({ choices: [], usage }) : ''
  return Buffer.from(
    chunk({ choices: said, ...noUsage }) + chunk({ choices: finished, ...noUsage }) + ofUsage + DONE,
  )
}
