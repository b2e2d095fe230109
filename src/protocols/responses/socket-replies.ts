/** Replies as messages on a WebSocket: each event of a stream is one, and so is a refusal. */
import { Buffer } from 'node:buffer'
import { scanFields } from '../../core/json/scanner/tape.ts'
import { parseFields, toFields, toList, toText } from '../loose.ts'
import { EventReader } from '../sse/event-reader.ts'
import type { SocketTurns, Turn } from './socket-turns.ts'

/** A refusal, as it would be answered over HTTP. */
interface Refusal {
  readonly status: number
  readonly headers: ReadonlyArray<readonly [string, string]>
  readonly body: string | Uint8Array
}

const ITEM_DONE = 'response.output_item.done'
/** Events that end a response which the next turn may go on with, and those that end any other. */
const ENDS: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete'])
const FAILURES: ReadonlySet<string> = new Set(['response.failed', 'error'])
const BAD_GATEWAY = 502
const HTTP_BAD_REQUEST = 400
const HTTP_NOT_FOUND = 404

const UNFINISHED = {
  type: 'api_error',
  code: 'upstream_error',
  message: 'The upstream ended the stream before the response was complete.',
}

export const EXPIRED = printError(HTTP_BAD_REQUEST, {
  type: 'invalid_request_error',
  code: 'websocket_connection_limit_reached',
  message: 'The WebSocket has been open for as long as it may. Open a new one to go on.',
})

function printError(status: number, error: object, more: object = {}): string {
  return JSON.stringify({ type: 'error', status, error, ...more })
}

/** Prints a refusal. Clients read what they would find in the headers of an answer in the field of that name. */
export function printRefusal(
  { status, headers, body }: Refusal,
  requestId: string,
  name: (error: Readonly<Record<string, unknown>>, status: number) => object | null = () => null,
): string {
  const text = Buffer.from(body as Uint8Array).toString('utf8')
  const { error = { message: text } } = parseFields(text) ?? {}
  const shown = { 'x-gateway-trace': requestId, ...Object.fromEntries(headers) }
  const named = name(toFields(error), status)
  return printError(named === null ? status : HTTP_BAD_REQUEST, named ?? toFields(error), { headers: shown })
}

/** Returns whether the next turn can send an item again: what was thought and is not sealed, no upstream takes. */
const isRepeatable = ({ type, encrypted_content }: Readonly<Record<string, unknown>>): boolean =>
  type !== 'reasoning' || toText(encrypted_content) !== ''

/** Names a response that cannot be found, as clients of a WebSocket expect it: they send the whole conversation then. */
const nameNotFound = (error: Readonly<Record<string, unknown>>, status: number): object | null =>
  status === HTTP_NOT_FOUND || toText(error.message).startsWith('previous_response_id:')
    ? { ...error, code: 'previous_response_not_found', param: 'previous_response_id' }
    : null

/** The reply to one turn. */
export class TurnReply {
  readonly #turns: SocketTurns
  readonly #turn: Turn
  readonly #send: (message: string) => void
  readonly #output: Buffer[] = []
  readonly #reader = new EventReader((name, data) => this.#take(name, data))
  #hasEnded = false

  constructor(turns: SocketTurns, turn: Turn, send: (message: string) => void) {
    this.#turns = turns
    this.#turn = turn
    this.#send = send
  }

  data(bytes: Uint8Array): void {
    this.#reader.push(bytes as Buffer)
  }

  end(requestId: string): void {
    this.#reader.end()
    if (this.#hasEnded) return
    this.#turns.fail(this.#turn)
    this.#send(printError(BAD_GATEWAY, UNFINISHED, { headers: { 'x-gateway-trace': requestId } }))
  }

  fail(refusal: Refusal, requestId: string): void {
    // Nothing follows the end of a response.
    if (this.#hasEnded) return
    this.#turns.fail(this.#turn)
    const isOfUpstream = this.#turn.upstreamPrevious !== null
    this.#send(printRefusal(refusal, requestId, isOfUpstream ? nameNotFound : undefined))
  }

  #take(name: string, data: string): void {
    const fields = name === '' || name === 'error' || ENDS.has(name) ? parseFields(data) : null
    // Such as the mark at the end of a stream.
    if (name === '' && fields === null) return
    const type = name || toText(fields?.type)
    if (type === ITEM_DONE) this.#keep(data)
    else if (ENDS.has(type)) this.#end(toFields(fields?.response))
    else if (FAILURES.has(type)) this.#noteFailure()
    this.#send(type === 'error' ? printErrorEvent(fields ?? {}) : data)
  }

  #keep(event: string): void {
    const bytes = Buffer.from(event)
    const span = scanFields(bytes).fields.get('item')
    if (span !== undefined) this.#output.push(bytes.subarray(span.start, span.end))
  }

  #end(response: Readonly<Record<string, unknown>>): void {
    this.#hasEnded = true
    const whole = toList(response.output).map((item) => Buffer.from(JSON.stringify(item)))
    const output = this.#output.length > 0 ? this.#output : whole
    const kept = output.filter((item) => isRepeatable(parseFields(item.toString('utf8')) ?? {}))
    this.#turns.end(this.#turn, toText(response.id), kept)
  }

  #noteFailure(): void {
    this.#hasEnded = true
    this.#turns.fail(this.#turn)
  }
}

/** Prints the error of a stream, which has no status, as clients of a WebSocket read one. */
function printErrorEvent({
  code,
  message,
  param,
  status,
  error,
  ...rest
}: Readonly<Record<string, unknown>>) {
  const { type: _, ...more } = rest
  const given = error ?? { type: 'api_error', code, message, param }
  return printError(typeof status === 'number' ? status : BAD_GATEWAY, toFields(given), more)
}
