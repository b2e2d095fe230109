/**
 * Reads the few facts a meter needs out of one event of a responses stream, in place: nothing is parsed but the usage
 * object itself.
 */
import { Buffer } from 'node:buffer'
import { skipSpace } from '../../core/json/fields.ts'
import { isFailedOutcome } from '../answer/content.ts'
import { FieldCursor } from '../answer/field-cursor.ts'
import type { AnswerFacts } from '../answer/place-scan.ts'
import { countCharacters } from '../chat-completions/scan.ts'
import { type LooseObject, parsedFields } from '../loose.ts'
import type { ItemFacts } from './tool-items.ts'

type EventKind =
  | 'completed'
  | 'failed'
  | 'cancelled'
  | 'delta'
  | 'item_added'
  | 'item_done'
  | 'error'
  | 'created'
  | 'other'

/** Places are indexes into the scanned bytes; -1 where there is none. */
export interface EventFacts {
  kind: EventKind
  /** Characters of output, weighed by script. */
  characters: number
  /** Place of a delta's text, without its quotes, when the type precedes it. */
  spokenStart: number
  /** Place of the event's number. */
  numberStart: number
  numberEnd: number
  usage: LooseObject | null
  /** The id of the response; empty without one. */
  id: string
  /** The upstream's name of the model; empty without one. */
  model: string
  /** The item that the event ends; null for any other event. */
  item: ItemFacts | null
  /** The service tier of the response; empty without one. */
  serviceTier: string
  /** JSON text of the error; null without one. */
  error: string | null
}

const bytesOf = (text: string): Buffer => Buffer.from(text)
const TYPE = bytesOf('type')
const DELTA = bytesOf('delta')
const NUMBER = bytesOf('sequence_number')
const RESPONSE = bytesOf('response')
const ITEM = bytesOf('item')
const ERROR = bytesOf('error')
const OUTCOME = bytesOf('base_resp')
const USAGE = bytesOf('usage')
const ID = bytesOf('id')
const MODEL = bytesOf('model')
const SERVICE_TIER = bytesOf('service_tier')
const NAME = bytesOf('name')
const ACTION = bytesOf('action')

const KINDS: ReadonlyMap<string, EventKind> = new Map([
  ['error', 'error'],
  ['response.created', 'created'],
  ['response.completed', 'completed'],
  ['response.incomplete', 'completed'],
  ['response.failed', 'failed'],
  ['response.cancelled', 'cancelled'],
  ['response.output_item.added', 'item_added'],
  ['response.output_item.done', 'item_done'],
])
/** Sound is no text. */
const UNSPOKEN_DELTA = 'response.audio.delta'

export function kindOf(type: string): EventKind {
  const kind = KINDS.get(type)
  if (kind !== undefined) return kind
  return type.endsWith('.delta') && type !== UNSPOKEN_DELTA ? 'delta' : 'other'
}

// One for each depth: nothing here is ever inside two objects of one depth.
const top = new FieldCursor()
const nested = new FieldCursor()
const innermost = new FieldCursor()

const newFacts = (): EventFacts => ({
  kind: 'other',
  characters: 0,
  spokenStart: -1,
  numberStart: -1,
  numberEnd: -1,
  usage: null,
  id: '',
  model: '',
  item: null,
  serviceTier: '',
  error: null,
})

/** Reads the facts of an event. Malformed JSON gives fewer facts, never an error or an endless loop. */
export function scanEvent(bytes: Buffer): EventFacts {
  const facts = newFacts()
  let [hasType, hasFailed] = [false, false]
  let [textStart, textEnd] = [-1, -1]
  let [responseAt, itemAt] = [-1, -1]
  top.enter(bytes, skipSpace(bytes, 0))
  while (top.next()) {
    if (top.is(TYPE) && top.isString) {
      hasType = true
      facts.kind = kindOf(bytes.toString('latin1', top.start + 1, top.end - 1))
    } else if (top.is(DELTA) && top.isString) {
      ;[textStart, textEnd] = [top.start + 1, top.end - 1]
      if (hasType) facts.spokenStart = textStart
    } else if (top.is(NUMBER)) {
      facts.numberStart = top.start
      facts.numberEnd = top.end
    } else if (top.is(RESPONSE)) responseAt = top.start
    else if (top.is(ITEM)) itemAt = top.start
    // Some upstreams have errors in the shape that most other protocols have.
    else if (top.is(ERROR) && !top.isNull) facts.error = bytes.toString('utf8', top.start, top.end)
    else if (top.is(OUTCOME))
      hasFailed = isFailedOutcome(parsedFields(bytes.toString('utf8', top.start, top.end)))
  }
  if (hasFailed || facts.error !== null) facts.kind = 'error'
  if (facts.kind === 'delta' && textStart >= 0) facts.characters = countCharacters(bytes, textStart, textEnd)
  if (facts.kind === 'item_done') facts.item = readItem(bytes, itemAt)
  if (responseAt >= 0) readResponse(bytes, responseAt, facts)
  return facts
}

/** Returns whether the event ends the answer: one that begins or continues it has not failed. */
const isEnding = (kind: EventKind): boolean =>
  kind === 'completed' || kind === 'failed' || kind === 'cancelled'

/** Returns the item of an event that ends one, of its places in a long event. */
export const itemOf = ({ item, item_name, item_action }: AnswerFacts['texts']): ItemFacts => ({
  type: item ?? '',
  name: item_name ?? '',
  action: item_action ?? '',
})

const shortText = (bytes: Buffer, { start, end }: FieldCursor): string =>
  bytes.toString('latin1', start + 1, end - 1)

function readItem(bytes: Buffer, at: number): ItemFacts {
  const item = { type: '', name: '', action: '' }
  nested.enter(bytes, at)
  while (nested.next())
    if (nested.is(TYPE) && nested.isString) item.type = shortText(bytes, nested)
    else if (nested.is(NAME) && nested.isString) item.name = shortText(bytes, nested)
    else if (nested.is(ACTION)) item.action = typeAt(bytes, nested.start)
  return item
}

function typeAt(bytes: Buffer, at: number): string {
  innermost.enter(bytes, at)
  while (innermost.next()) if (innermost.is(TYPE) && innermost.isString) return shortText(bytes, innermost)
  return ''
}

function readResponse(bytes: Buffer, at: number, facts: EventFacts): void {
  nested.enter(bytes, at)
  while (nested.next()) {
    if (nested.isNull) continue
    if (nested.is(MODEL) && nested.isString)
      facts.model = bytes.toString('utf8', nested.start + 1, nested.end - 1)
    else if (nested.is(ID) && nested.isString)
      facts.id = bytes.toString('utf8', nested.start + 1, nested.end - 1)
    else if (nested.is(SERVICE_TIER) && nested.isString)
      facts.serviceTier = bytes.toString('latin1', nested.start + 1, nested.end - 1)
    else if (nested.is(USAGE)) facts.usage = parsedFields(bytes.toString('utf8', nested.start, nested.end))
    else if (nested.is(ERROR) && isEnding(facts.kind))
      facts.error = bytes.toString('utf8', nested.start, nested.end)
  }
}
