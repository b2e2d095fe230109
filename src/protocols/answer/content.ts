/** Decides whether an upstream's body is an answer at all, and whether it is an error in spite of its status. */
import type { Buffer } from 'node:buffer'
import type { Part } from '../../../schemas/chat/part.ts'
import { scanJson } from '../../core/json/scanner/tape.ts'
import { weighCodeUnit } from '../../core/pricing/text-tokens.ts'
import { type LooseObject, parseFields, parseValue, toFields, toList, toText } from '../loose.ts'
import type { AnswerFacts } from './places.ts'

/** Returns false for null, false, 0 and any empty value: a field that is present without content. */
export const saysSomething = (value: unknown): boolean =>
  typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value)

/** Returns whether `base_resp`, in which some upstreams report the outcome, has another code than 0. */
export const isFailedOutcome = (outcome: unknown): boolean => {
  const code = toFields(outcome).status_code
  return code !== '0' && saysSomething(code)
}

/** Returns whether an answer or an event reports a failure, in a field that is common to all protocols. */
export const saysError = (body: LooseObject): boolean =>
  saysSomething(body.error) || isFailedOutcome(body.base_resp)

/** Returns the failure that an answer or an event reports, as JSON text with the field that has it; null without one. */
export function findFailure({ error, outcome }: AnswerFacts): string | null {
  if (error !== undefined && saysSomething(parseValue(error))) return `{"error":${error}}`
  return outcome !== undefined && isFailedOutcome(parseValue(outcome)) ? `{"base_resp":${outcome}}` : null
}

const BYTE_ORDER_MARK = '\ufeff'

/** Returns the fields of a whole answer; null for a body that is no JSON object. */
export function answerFields(body: Buffer): LooseObject | null {
  const text = body.toString('utf8')
  const fields = parseFields(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text)
  return Array.isArray(fields) ? null : fields
}

/** Returns whether the bytes are one whole JSON object, without making it. */
export const isJsonObject = (body: Buffer): boolean =>
  scanJson(body, 0, null, (tape) => tape.isObjectText) ?? answerFields(body) !== null

/** Returns whether a native answer without an error is JSON that holds content or usage (`isReported`). */
export function isWholeAnswer(
  body: Buffer,
  isReported: boolean,
  hasContent: (answer: LooseObject) => boolean,
): boolean {
  if (isReported) return isJsonObject(body)
  const answer = answerFields(body)
  return answer !== null && hasContent(answer)
}

/** Returns whether a part of content, whichever protocol's, holds more than an empty text. */
function isSpeakingPart(part: unknown): boolean {
  if (typeof part === 'string') return part !== ''
  const { type: _, ...rest } = toFields(part)
  return Object.values(rest).some(saysSomething)
}

const saysContent = (content: unknown): boolean =>
  Array.isArray(content) ? content.some(isSpeakingPart) : saysSomething(content)

const FILTERED = 'content_filter'

/** Fields of a message that name its role, or are empty. */
const MESSAGE_HEAD: ReadonlySet<string> = new Set(['role', 'name', 'id', 'annotations'])

function isSpeakingChoice(choice: unknown): boolean {
  const { message, delta, text, finish_reason } = toFields(choice)
  const said = Object.entries(toFields(message ?? delta)).filter(([name]) => !MESSAGE_HEAD.has(name))
  return said.some(([, value]) => saysContent(value)) || saysSomething(text) || finish_reason === FILTERED
}

/** Returns whether an answer in the chat-completions protocol has content, or reports that its filter removed it. */
export const hasChoiceContent = ({ choices }: LooseObject): boolean => toList(choices).some(isSpeakingChoice)

/** Returns the same for a message of the messages protocol. */
export const hasMessageContent = ({ content, stop_reason }: LooseObject): boolean =>
  saysContent(content) || stop_reason === 'refusal'

/**
 * Returns whether an item of the responses protocol has content. A message without text has none; every other item
 * has.
 */
const isSpeakingItem = (item: unknown): boolean => {
  const { type, content } = toFields(item)
  return toText(type) !== '' && (type !== 'message' || saysContent(content))
}

/** Returns the same for an answer of the responses protocol. */
export const hasItemContent = ({ output }: LooseObject): boolean => toList(output).some(isSpeakingItem)

/** Parts that make an answer though they are no text. */
const ANSWERING: ReadonlySet<Part['type']> = new Set([
  'tool_call',
  'sealed_reasoning',
  'image',
  'audio',
  'refusal',
])

/** Counts the output in the parts of a translated answer. */
export class SaidParts {
  /** Characters of output, weighed by script. */
  characters = 0
  /** Those of them that were thought. */
  thoughtCharacters = 0
  /** Content has arrived, or a filter has taken it. */
  hasContent = false

  add(part: Part): void {
    const said = countTextCharacters(readOutput(part))
    this.characters += said
    if (part.type === 'reasoning') this.thoughtCharacters += said
    this.hasContent ||=
      said > 0 || ANSWERING.has(part.type) || (part.type === 'finish' && part.reason === FILTERED)
  }
}

/** Characters, weighed by script. The halves of a pair may come in two pieces: it is the first that counts. */
export function countTextCharacters(text: string): number {
  let count = 0
  for (let i = 0; i < text.length; i++) count += weighCodeUnit(text.charCodeAt(i))
  return count
}

/** Returns the text of a part that is output. */
function readOutput(part: Part): string {
  if (part.type === 'text' || part.type === 'reasoning') return part.text
  return part.type === 'tool_arguments' ? part.json : ''
}
