/**
 * Reads a server-sent event stream that is to be translated: bytes in pieces of any size, events as text. Where bytes
 * pass through untouched, `framer.ts` reads along instead.
 */
import { StringDecoder } from 'node:string_decoder'
import { createParser, type EventSourceParser } from 'eventsource-parser'

/** A single event may hold a whole picture; more than this of one event is a fault. */
export const MAX_EVENT_CHARS = 33_554_432

const BYTE_ORDER_MARK = 0xfeff

/** Called with each event. `name` is empty where the event has none. */
type OnTextEvent = (name: string, data: string) => void

export class EventReader {
  readonly #decoder = new StringDecoder('utf8')
  readonly #parser: EventSourceParser
  #isFirst = true
  /** An event was too long to be read; so is everything after it. */
  hasOverflown = false

  constructor(onEvent: OnTextEvent) {
    this.#parser = createParser({
      onEvent: ({ event, data }) => {
        if (data !== '') onEvent(event ?? '', data)
      },
      onError: ({ type }) => {
        if (type === 'max-buffer-size-exceeded') this.hasOverflown = true
      },
      maxBufferSize: MAX_EVENT_CHARS,
    })
  }

  push(piece: Buffer): void {
    this.#feed(this.#decoder.write(piece))
  }

  /** Ends the stream. Some upstreams leave out the last empty line. */
  end(): void {
    this.#feed(`${this.#decoder.end()}\n\n`)
  }

  #feed(text: string): void {
    if (text === '' || this.hasOverflown) return
    const hasMark = this.#isFirst && text.charCodeAt(0) === BYTE_ORDER_MARK
    this.#isFirst = false
    // The parser makes an error of each line that it does not know: with its stack that takes longer than all the rest.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    try {
      this.#parser.feed(hasMark ? text.slice(1) : text)
    } finally {
      Error.stackTraceLimit = stackTraceLimit
    }
  }
}
