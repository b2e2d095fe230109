import { connect, type Socket } from 'node:net'
import { ANSWER, TOKEN } from '../upstream/replies.ts'
import { EventCounter } from './event-counter.ts'
import type { Endpoint } from './request.ts'
import { ResponseReader } from './response-reader.ts'

const BODY_START_CHARACTERS = 300
const PIECE_OF_TEXT = Buffer.from(TOKEN)
/** Chunks of a stream without text: its first and its last. */
const SILENT_CHUNKS = 2

/** What every response of a run must have. */
export interface Expectation {
  /** Events of a stream without `[DONE]`; null for a call that does not stream. */
  chunks: number | null
  /** Length of the body where it is known; null checks none. */
  bodyBytes: number | null
}

/** The result of one call. Times are from `performance.now()`, in milliseconds. */
export interface CallTimes {
  firstByteAt: number
  endAt: number
}

/**
 * One keep-alive connection with at most one call on it. Checks every response and reports the first wrong one,
 * or a connection that ends too early, as a failure.
 */
export class Connection {
  readonly #socket: Socket
  readonly #expected: Expectation
  readonly #failed: (reason: string) => void
  readonly #reader: ResponseReader
  /** Whether the gateway rewrites answers, so that only their text is known. */
  readonly #rewritten: boolean
  readonly #counter: EventCounter
  readonly opened: Promise<void>
  #onEnd: ((times: CallTimes) => void) | null = null
  #status = 0
  #bodyBytes = 0
  #firstByteAt = 0
  /** The start of an error, or a whole answer that was rewritten. */
  #text = ''
  #closed = false

  constructor({ port, rewrites = false }: Endpoint, expected: Expectation, failed: (reason: string) => void) {
    this.#expected = expected
    this.#rewritten = rewrites
    this.#counter = rewrites ? new EventCounter(PIECE_OF_TEXT) : new EventCounter()
    this.#failed = failed
    this.#reader = new ResponseReader({
      head: (status) => {
        this.#status = status
      },
      body: (piece) => this.#body(piece),
      end: () => this.#end(),
    })
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.opened = new Promise((resolve) => this.#socket.once('connect', () => resolve()))
    this.#socket.on('data', (piece: Buffer) => this.#data(piece))
    this.#socket.on('error', (error) => this.#fail(error.message))
    this.#socket.on('close', () => this.#fail('the connection was closed'))
  }

  /** Events, or pieces of text, of the current stream so far. */
  get chunks(): number {
    return this.#counter.events
  }

  /** True after the first body byte of the current call. */
  get begun(): boolean {
    return this.#firstByteAt > 0
  }

  call(request: Buffer, onEnd: (times: CallTimes) => void): void {
    this.#onEnd = onEnd
    this.#status = 0
    this.#bodyBytes = 0
    this.#firstByteAt = 0
    this.#text = ''
    this.#counter.reset()
    this.#socket.write(request)
  }

  close(): void {
    this.#closed = true
    this.#socket.destroy()
  }

  #data(piece: Buffer): void {
    if (this.#closed) return
    try {
      this.#reader.read(piece)
    } catch (error) {
      this.#fail((error as Error).message)
    }
  }

  #body(piece: Buffer): void {
    if (this.#firstByteAt === 0) this.#firstByteAt = performance.now()
    this.#bodyBytes += piece.length
    if (this.#status !== 200) this.#text += piece.toString('utf8', 0, BODY_START_CHARACTERS)
    else if (this.#expected.chunks !== null) this.#counter.add(piece)
    else if (this.#rewritten) this.#text += piece.toString()
  }

  #end(): void {
    const wrong = this.#whatIsWrong()
    const onEnd = this.#onEnd
    this.#onEnd = null
    if (wrong) this.#fail(wrong)
    else if (!onEnd) this.#fail('a response that nobody asked for')
    else onEnd({ firstByteAt: this.#firstByteAt, endAt: performance.now() })
  }

  #whatIsWrong(): string | null {
    const { chunks, bodyBytes } = this.#expected
    if (this.#status !== 200) return `status ${this.#status}: ${this.#text.slice(0, BODY_START_CHARACTERS)}`
    if (chunks !== null) {
      if (!this.#counter.done) return `a stream of ${this.#counter.events} events that did not end in [DONE]`
      const got = this.#rewritten ? this.#counter.events + SILENT_CHUNKS : this.#counter.events - 1
      if (got !== chunks) return `a stream of ${got} chunks instead of ${chunks}`
    } else if (this.#rewritten) return this.#text.includes(ANSWER) ? null : "not the upstream's answer"
    if (bodyBytes !== null && this.#bodyBytes !== bodyBytes)
      return `a body of ${this.#bodyBytes} bytes instead of ${bodyBytes}`
    return null
  }

  #fail(reason: string): void {
    if (this.#closed) return
    this.close()
    this.#failed(reason)
  }
}
