/**
 * The turns on one WebSocket: what the client's message asks for, as the body of a request over HTTP. A turn may go on with
 * the last response, of which this keeps the items: no upstream knows it otherwise. See docs/api-rules.md, "Responses over
 * WebSocket".
 */
import { Buffer } from 'node:buffer'
import { Failure } from '../../../schemas/failure.ts'
import { scanFields, scanItems } from '../../core/json/scanner/tape.ts'
import { cutField, type FieldSpan } from '../../core/json/splice.ts'
import { parseValue, toText } from '../loose.ts'

const LIST = 0x5b
const CREATE = 'response.create'
/** A client's note that it has handled a response. It asks for nothing. */
const PROCESSED = 'response.processed'
/** Fields of the message that a request over HTTP does not have, or has otherwise. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['type', 'generate', 'stream'])
/** The most that is kept of one conversation; of a longer one nothing, and its client sends it whole. */
const MAX_KEPT_BYTES = 32 * 1024 * 1024
const COMMA = Buffer.from(',')

export interface Turn {
  readonly body: Buffer
  /** False for a warm-up: there is nothing to answer, the next turn goes on with it. */
  readonly generates: boolean
  /** The response of an upstream that the turn goes on with; null without one. */
  readonly upstreamPrevious: string | null
  /** Whether it goes on with what is kept here. */
  readonly usesLast: boolean
  /** The items up to the answer, without brackets; null where they are not known here. */
  readonly items: Buffer | null
}

/** A conversation up to the end of its last response. */
interface Kept {
  readonly id: string
  /** The items, without brackets. */
  readonly items: Buffer
}

const refuse = (message: string): Failure => new Failure('invalid_request', message)

/** Returns the items of an input: those of a list, or one of a text. The reader of the request refuses anything else. */
function readItems(input: Buffer): readonly Buffer[] {
  if (input[0] === LIST) return scanItems(input)
  return [Buffer.from(JSON.stringify({ role: 'user', content: parseValue(input.toString('utf8')) }))]
}

function joinItems(parts: readonly Buffer[]): Buffer {
  const full = parts.filter(({ length }) => length > 0)
  return Buffer.concat(full.flatMap((part, index) => (index === 0 ? [part] : [COMMA, part])))
}

export class SocketTurns {
  #last: Kept | null = null
  /** The last response that its channel keeps: it is asked for there. */
  #storedId = ''

  get keptBytes(): number {
    return this.#last?.items.length ?? 0
  }

  forget(): void {
    this.#last = null
  }

  /** Notes that a channel keeps a response. */
  noteStored(id: string): void {
    this.#storedId = id
  }

  /** Returns the turn that a message asks for; null where it asks for none. @throws Failure `invalid_request` */
  read(message: Buffer): Turn | null {
    const { fields } = scanFields(message)
    const readValue = (name: string): unknown => {
      const span = fields.get(name)
      return span && parseValue(message.toString('utf8', span.start, span.end))
    }
    const type = readValue('type')
    if (type === PROCESSED) return null
    if (type !== CREATE)
      throw refuse(`The message is not valid: a JSON object of the type '${CREATE}' is expected.`)
    if (readValue('stream_id') != null)
      throw refuse(
        "Field 'stream_id' is not valid: a connection makes one response at a time. Open another connection, and leave it out.",
      )
    const previous = readValue('previous_response_id') ?? null
    const last = previous === this.#last?.id && previous !== this.#storedId ? this.#last : null
    const isKnown = previous === null || last !== null
    const input = fields.get('input')
    const given = input === undefined ? [] : readItems(message.subarray(input.start, input.end))
    const isWhole = isKnown && readValue('conversation') == null
    const items = isWhole ? joinItems([last?.items ?? Buffer.alloc(0), ...given]) : null
    return {
      body: writeBody(message, fields, last === null ? null : items),
      generates: readValue('generate') !== false,
      upstreamPrevious: isKnown ? null : toText(previous),
      usesLast: last !== null,
      items,
    }
  }

  /** Keeps what the next turn may go on with. */
  end(turn: Turn, id: string, output: readonly Buffer[]): void {
    this.#last = null
    if (turn.items === null || id === '' || id === this.#storedId) return
    const items = joinItems([turn.items, ...output])
    if (items.length <= MAX_KEPT_BYTES) this.#last = { id, items }
  }

  /** A turn has failed: what it goes on with is forgotten, as the client expects. */
  fail({ usesLast }: Turn): void {
    if (usesLast) this.#last = null
  }
}

/** Returns the body of the request; `items` take the place of the input and of the response before. */
function writeBody(message: Buffer, fields: ReadonlyMap<string, FieldSpan>, items: Buffer | null): Buffer {
  const pieces: Buffer[] = [Buffer.from('{"stream":true')]
  for (const [name, span] of fields) {
    const isReplaced = items !== null && (name === 'input' || name === 'previous_response_id')
    if (!OWN_FIELDS.has(name) && !isReplaced) pieces.push(COMMA, cutField(message, span))
  }
  if (items !== null) pieces.push(Buffer.from(',"input":['), items, Buffer.from(']'))
  pieces.push(Buffer.from('}'))
  return Buffer.concat(pieces)
}
