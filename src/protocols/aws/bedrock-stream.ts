/**
 * A stream of the messages protocol inside the framing of AWS: read as the server-sent events that it would be without
 * that.
 */
import { Buffer } from 'node:buffer'
import type { TokenUsage } from '../../core/pricing/usage.ts'
import type { AnswerStream } from '../dialect.ts'
import { parsedFields, textOf } from '../loose.ts'
import { type EventMessage, EventStreamReader } from './event-stream.ts'

export const EVENT_STREAM_TYPE = 'application/vnd.amazon.eventstream'
/** Counts of the provider's own, beside those of the protocol. */
const METRICS = 'amazon-bedrock-invocationMetrics'
const ERROR_TYPES: Readonly<Record<string, string>> = {
  throttlingException: 'rate_limit_error',
  validationException: 'invalid_request_error',
  serviceUnavailableException: 'overloaded_error',
}

const sse = (event: string, data: string): string => `event: ${event}\ndata: ${data}\n\n`

const errorEvent = (type: string, message: string): string =>
  sse('error', JSON.stringify({ type: 'error', error: { type, message } }))

/** A message as a server-sent event, with the provider's counts and without them; empty for one that holds none. */
interface Framed {
  readonly metered: string
  readonly shown: string
}

const same = (text: string): Framed => ({ metered: text, shown: text })

function framed({ headers, payload }: EventMessage): Framed {
  const fields = parsedFields(payload.toString('utf8'))
  if (headers[':message-type'] !== 'event') {
    const kind = headers[':exception-type'] ?? headers[':error-code'] ?? ''
    const message =
      textOf(fields?.message) || headers[':error-message'] || 'The upstream ended with an error.'
    return same(errorEvent(ERROR_TYPES[kind] ?? 'api_error', message))
  }
  const text = Buffer.from(textOf(fields?.bytes), 'base64').toString('utf8')
  const event = parsedFields(text)
  if (event === null) return same('')
  const metered = sse(textOf(event.type), text)
  if (event[METRICS] === undefined) return same(metered)
  const { [METRICS]: _, ...rest } = event
  return { metered, shown: sse(textOf(event.type), JSON.stringify(rest)) }
}

export class BedrockStream implements AnswerStream {
  readonly #reader = new EventStreamReader()
  readonly #events: AnswerStream
  #isDamaged = false

  /** @param events reads the same answer as server-sent events */
  constructor(events: AnswerStream) {
    this.#events = events
  }

  push(piece: Buffer): Buffer | null {
    if (this.#isDamaged) return null
    const events = this.#read(piece)
    const metered = Buffer.from(events.map((event) => event.metered).join(''))
    if (metered.length === 0) return null
    const out = this.#events.push(metered)
    // What passes unchanged is not all for the client; a translation has left the counts out itself.
    const isHiding = out === metered && events.some((event) => event.shown !== event.metered)
    return isHiding ? Buffer.from(events.map(({ shown }) => shown).join('')) : out
  }

  #read(piece: Buffer): readonly Framed[] {
    try {
      return this.#reader.push(piece).map(framed)
    } catch (error) {
      this.#isDamaged = true
      return [same(errorEvent('api_error', (error as Error).message))]
    }
  }

  end(): Buffer | null {
    return this.#events.end()
  }

  get usage(): TokenUsage | null {
    return this.#events.usage
  }
  get characters(): number {
    return this.#events.characters
  }
  get charactersSinceUsage(): number {
    return this.#events.charactersSinceUsage
  }
  get isUsageWhole(): boolean {
    return this.#events.isUsageWhole
  }
  get model(): string {
    return this.#events.model ?? ''
  }
  get suspect(): string {
    return this.#events.suspect ?? ''
  }
  get reported(): unknown {
    return this.#events.reported
  }
  get serviceTier(): string {
    return this.#events.serviceTier ?? ''
  }
  get hasBegun(): boolean {
    return this.#events.hasBegun
  }
  get isBetweenEvents(): boolean {
    return this.#events.isBetweenEvents
  }
  get isComplete(): boolean {
    return this.#events.isComplete
  }
  get awaitsUsage(): boolean {
    return this.#events.awaitsUsage
  }
  get isAnswer(): boolean {
    return this.#events.isAnswer
  }
  get firstError(): Buffer | null {
    return this.#events.firstError
  }
  get laterError(): Buffer | null {
    return this.#events.laterError
  }
}
