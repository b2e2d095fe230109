/**
 * A stream of the messages protocol inside the framing of AWS: read as the server-sent events that it would be without
 * that.
 */
import { Buffer } from 'node:buffer'
import type { AnswerStream } from '../dialect.ts'
import { parseFields, toText } from '../loose.ts'
import { METRICS_FIELD } from '../messages/usage.ts'
import { type EventMessage, EventStreamReader } from './event-stream.ts'

export const EVENT_STREAM_TYPE = 'application/vnd.amazon.eventstream'
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

function toFramed({ headers, payload }: EventMessage): Framed {
  const fields = parseFields(payload.toString('utf8'))
  if (headers[':message-type'] !== 'event') {
    const kind = headers[':exception-type'] ?? headers[':error-code'] ?? ''
    const message =
      toText(fields?.message) || headers[':error-message'] || 'The upstream ended with an error.'
    return same(errorEvent(ERROR_TYPES[kind] ?? 'api_error', message))
  }
  const text = Buffer.from(toText(fields?.bytes), 'base64').toString('utf8')
  const event = parseFields(text)
  if (event === null) return same('')
  const metered = sse(toText(event.type), text)
  if (event[METRICS_FIELD] === undefined) return same(metered)
  const { [METRICS_FIELD]: _, ...rest } = event
  return { metered, shown: sse(toText(event.type), JSON.stringify(rest)) }
}

/**
 * Makes a stream read its answer inside the framing of AWS; all else of it stays.
 * @param events reads the same answer as server-sent events
 */
export function withEventStreamFraming(events: AnswerStream): AnswerStream {
  const reader = new EventStreamReader()
  const pushEvents = events.push.bind(events)
  let isDamaged = false
  const read = (piece: Buffer): readonly Framed[] => {
    try {
      return reader.push(piece).map(toFramed)
    } catch (error) {
      isDamaged = true
      return [same(errorEvent('api_error', (error as Error).message))]
    }
  }
  events.push = (piece) => {
    if (isDamaged) return null
    const pieces = read(piece)
    const metered = Buffer.from(pieces.map((event) => event.metered).join(''))
    if (metered.length === 0) return null
    const out = pushEvents(metered)
    // What passes unchanged is not all for the client; a translation has left the counts out itself.
    const isHiding = out === metered && pieces.some((event) => event.shown !== event.metered)
    return isHiding ? Buffer.from(pieces.map(({ shown }) => shown).join('')) : out
  }
  return events
}
