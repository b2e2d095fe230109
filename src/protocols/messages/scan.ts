/**
 * Reads the few facts a meter needs out of one event of a messages stream, in place: nothing is parsed but the usage
 * object itself.
 */
import { Buffer } from 'node:buffer'
import { skipSpace } from '../../core/json/fields.ts'
import { isFailedOutcome, saysSomething } from '../answer/content.ts'
import { FieldCursor } from '../answer/field-cursor.ts'
import { countCharacters } from '../chat-completions/scan.ts'
import { type LooseObject, parsedFields } from '../loose.ts'
import { METRICS_FIELD, type ToolBlock } from './usage.ts'

type EventKind =
  | 'message_start'
  | 'message_delta'
  | 'message_stop'
  | 'block_stop'
  | 'ping'
  | 'error'
  | 'other'

export interface EventFacts {
  kind: EventKind
  /** Characters, weighed by script, of text, thinking and tool arguments. */
  characters: number
  /** Strings of output, and the place of the last one, without its quotes. */
  spoken: number
  spokenStart: number
  spokenEnd: number
  /** A block begins that is more than a text or a thought. */
  isOtherBlock: boolean
  /** That block. */
  tools: readonly ToolBlock[]
  /** The event's own usage, or that of the message that it starts; null without one. */
  usage: LooseObject | null
  /** Counts that Bedrock adds to the last event; null without them. */
  metrics: LooseObject | null
  /** The upstream's name of the model; empty without one. */
  model: string
}

const bytesOf = (text: string): Buffer => Buffer.from(text)
const TYPE = bytesOf('type')
const USAGE = bytesOf('usage')
const METRICS = bytesOf(METRICS_FIELD)
const MODEL = bytesOf('model')
const MESSAGE = bytesOf('message')
const DELTA = bytesOf('delta')
const CONTENT_BLOCK = bytesOf('content_block')
const CONTENT = bytesOf('content')
const ERROR = bytesOf('error')
const OUTCOME = bytesOf('base_resp')
const NAME = bytesOf('name')
const NO_TOOLS: readonly ToolBlock[] = []
/** Fields whose strings are output, `content` that of a summary. Citations, signatures and results of tools are not. */
export const SPOKEN_FIELDS = ['text', 'thinking', 'partial_json', 'content'] as const
const SPOKEN = SPOKEN_FIELDS.map(bytesOf)
export const SPOKEN_TYPES: readonly string[] = ['text', 'thinking']
const SPOKEN_BLOCKS = SPOKEN_TYPES.map(bytesOf)
const KINDS = (
  [
    ['message_start', 'message_start'],
    ['message_delta', 'message_delta'],
    ['message_stop', 'message_stop'],
    ['content_block_stop', 'block_stop'],
    ['ping', 'ping'],
    ['error', 'error'],
  ] as const
).map(([type, kind]) => ({ type, kind, word: bytesOf(type) }))

/** Returns the kind of an event that `scanEvent` does not read. */
export const kindOf = (type: string | undefined): EventKind =>
  KINDS.find((known) => known.type === type)?.kind ?? 'other'

// One for each depth: nothing here is ever inside two objects of one depth.
const top = new FieldCursor()
const nested = new FieldCursor()
const inner = new FieldCursor()

const usageAt = (bytes: Buffer, cursor: FieldCursor): LooseObject | null =>
  cursor.isNull ? null : parsedFields(bytes.toString('utf8', cursor.start, cursor.end))

const textAt = (bytes: Buffer, cursor: FieldCursor): string =>
  cursor.isString ? bytes.toString('utf8', cursor.start + 1, cursor.end - 1) : ''

function valueAt(bytes: Buffer, cursor: FieldCursor): unknown {
  try {
    return JSON.parse(bytes.toString('utf8', cursor.start, cursor.end))
  } catch {
    return null
  }
}

const newFacts = (): EventFacts => ({
  kind: 'other',
  characters: 0,
  spoken: 0,
  spokenStart: 0,
  spokenEnd: 0,
  isOtherBlock: false,
  tools: NO_TOOLS,
  usage: null,
  metrics: null,
  model: '',
})

export function scanEvent(bytes: Buffer): EventFacts {
  const facts = newFacts()
  let hasError = false
  top.enter(bytes, skipSpace(bytes, 0))
  while (top.next()) {
    if (top.is(TYPE)) {
      facts.kind = KINDS.find(({ word }) => top.isText(word))?.kind ?? 'other'
    } else if (top.is(DELTA)) addSpoken(bytes, top.start, facts)
    else if (top.is(CONTENT_BLOCK)) {
      addSpoken(bytes, top.start, facts)
      facts.isOtherBlock = isOtherBlock(bytes, top.start)
      if (facts.isOtherBlock) facts.tools = [toolBlock(bytes, top.start)]
    } else if (top.is(USAGE)) facts.usage = usageAt(bytes, top)
    else if (top.is(MESSAGE)) readMessage(bytes, top.start, facts)
    else if (top.is(MODEL)) facts.model = textAt(bytes, top)
    else if (top.is(METRICS)) facts.metrics = usageAt(bytes, top)
    // Some upstreams have errors in the shape that most other protocols have.
    else if (top.is(ERROR)) hasError ||= saysSomething(valueAt(bytes, top))
    else if (top.is(OUTCOME)) hasError ||= isFailedOutcome(valueAt(bytes, top))
  }
  if (hasError) facts.kind = 'error'
  return facts
}

function isOtherBlock(bytes: Buffer, at: number): boolean {
  nested.enter(bytes, at)
  while (nested.next()) if (nested.is(TYPE)) return !SPOKEN_BLOCKS.some((type) => nested.isText(type))
  return false
}

function toolBlock(bytes: Buffer, at: number): ToolBlock {
  let [type, name, contentType] = ['', '', '']
  nested.enter(bytes, at)
  while (nested.next())
    if (nested.is(TYPE)) type = textAt(bytes, nested)
    else if (nested.is(NAME)) name = textAt(bytes, nested)
    else if (nested.is(CONTENT)) {
      inner.enter(bytes, nested.start)
      while (inner.next()) if (inner.is(TYPE)) contentType = textAt(bytes, inner)
    }
  return { type, name, contentType }
}

/** Adds the output in the object at `at`. */
function addSpoken(bytes: Buffer, at: number, facts: EventFacts): void {
  nested.enter(bytes, at)
  while (nested.next())
    if (nested.isString && SPOKEN.some((word) => nested.is(word))) {
      facts.spoken++
      facts.spokenStart = nested.start + 1
      facts.spokenEnd = nested.end - 1
      facts.characters += countCharacters(bytes, facts.spokenStart, facts.spokenEnd)
    }
}

function readMessage(bytes: Buffer, at: number, facts: EventFacts): void {
  nested.enter(bytes, at)
  while (nested.next())
    if (nested.is(USAGE)) facts.usage = usageAt(bytes, nested)
    else if (nested.is(MODEL)) facts.model = textAt(bytes, nested)
}
