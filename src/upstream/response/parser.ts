import { type Fault, malformed, tooLarge } from '../fault.ts'
import { MAX_INTERIM_RESPONSES, MAX_RESPONSE_HEAD_BYTES } from '../limits.ts'
import { ChunkedDecoder } from './chunked.ts'
import { ABSENT, MORE } from './field-scanner.ts'
import { FieldSection } from './field-section.ts'
import { ResponseHeaders } from './headers.ts'

const LONG_HEAD = tooLarge('response head too long')
const LONG_BODY = tooLarge('body too long')
const MANY_INTERIM = tooLarge('too many 1xx responses')
const SWITCHING = malformed('101 without an upgrade')
const FRAMED_INTERIM = malformed('1xx response with framing fields')
const BOTH_FRAMINGS = malformed('both content-length and transfer-encoding')
const FRAMED_204 = malformed('204 that announces a body')
const OLD_CHUNKED = malformed('transfer-encoding in HTTP/1.0')
const NO_HEAD: Fault = { kind: 'closed', detail: 'connection closed before a response' }
const CUT_HEAD: Fault = { kind: 'truncated', detail: 'connection closed inside the response head' }
const CUT_BODY: Fault = { kind: 'truncated', detail: 'connection closed inside the body' }

const HEAD = 0
const FIXED = 1
const CHUNKED = 2
const UNTIL_CLOSE = 3
const DONE = 4

/**
 * Reads one response after another from the pieces that a connection brings (RFC 9112 6). `read` reports in the fields
 * below what one piece brought: possibly a head, then possibly data, then possibly the end or a fault; in that order.
 */
export class ResponseParser {
  /** The final response's head ended in this piece. */
  headReady = false
  status = 0
  headers: ResponseHeaders | null = null
  /** Body bytes in the piece just read; none when equal. The piece may have been rearranged. */
  dataFrom = 0
  dataTo = 0
  /** The response is complete; `rest` is where foreign bytes would begin. */
  done = false
  rest = 0
  fault: Fault | null = null
  /** Valid once done: another request may follow on the connection. */
  reusable = false
  /** `Keep-Alive: timeout=…` of the server in seconds, or ABSENT. */
  keepAliveSeconds = ABSENT

  readonly #head = new FieldSection(MAX_RESPONSE_HEAD_BYTES, LONG_HEAD, true)
  #chunks: ChunkedDecoder | null = null
  #state = DONE
  #withoutBody = false
  #began = false
  #interim = 0
  /** Body bytes still to come, or still allowed where the length is unknown. */
  #remaining = 0
  #maxBodyBytes = 0

  /** @param isHead the request was a HEAD: the response has no body, whatever its fields say */
  start(isHead: boolean, maxBodyBytes: number): void {
    this.#head.reset()
    this.#state = HEAD
    this.#withoutBody = isHead
    this.#began = false
    this.#interim = 0
    this.#maxBodyBytes = maxBodyBytes
    this.headReady = false
    this.headers = null
    this.done = false
    this.fault = null
  }

  read(buffer: Buffer, from: number, to: number): void {
    let at = from
    this.headReady = false
    this.dataFrom = this.dataTo = at
    if (this.#state === HEAD) {
      at = this.#readHead(buffer, at, to)
      if (at < 0) return
      this.dataFrom = this.dataTo = at
    }
    switch (this.#state) {
      case FIXED:
        at = this.#readFixed(at, to)
        break
      case CHUNKED:
        at = this.#readChunks(buffer, at, to)
        break
      case UNTIL_CLOSE:
        at = this.#readUntilClose(at, to)
        break
    }
    this.rest = at
  }

  /** Called once when the peer has closed. Sets `done` or `fault`. */
  end(): void {
    this.headReady = false
    this.dataTo = this.dataFrom
    if (this.#state === UNTIL_CLOSE) {
      this.reusable = false
      this.done = true
    } else if (this.#state === HEAD) this.fault = this.#began ? CUT_HEAD : NO_HEAD
    else if (!this.done) this.fault = CUT_BODY
  }

  #readHead(buffer: Buffer, from: number, to: number): number {
    const head = this.#head
    let at = from
    while (at < to) {
      this.#began = true
      at = head.read(buffer, at, to)
      if (at === MORE) return at
      if (at < 0) this.fault = head.fault
      else this.#judge()
      if (this.fault !== null) return MORE
      if (this.headReady) return at
      head.reset()
    }
    return MORE
  }

  /** Decides from a complete head how the body is framed, or that this was an interim response. */
  #judge(): void {
    const { status, fields } = this.#head
    const isFramed = fields.chunked || fields.contentLength !== ABSENT
    if (status < 200) {
      if (status === 101) this.fault = SWITCHING
      else if (isFramed) this.fault = FRAMED_INTERIM
      else if (++this.#interim > MAX_INTERIM_RESPONSES) this.fault = MANY_INTERIM
      return
    }
    if (fields.chunked && fields.contentLength !== ABSENT) this.fault = BOTH_FRAMINGS
    else if (fields.chunked && this.#head.http10) this.fault = OLD_CHUNKED
    if (this.fault !== null) return
    this.status = status
    this.headers = new ResponseHeaders(this.#head.text, fields.contentType, fields.contentEncoding)
    this.headReady = true
    this.keepAliveSeconds = fields.keepAliveSeconds
    this.reusable = !fields.close && (!this.#head.http10 || fields.keepAlive)
    this.#chooseBody(status, fields.chunked, fields.contentLength)
  }

  #chooseBody(status: number, chunked: boolean, contentLength: number): void {
    if (this.#withoutBody || status === 204 || status === 304) {
      // A 304 or the answer to a HEAD may name the length of what it does not bring; a 204 may not (RFC 9110 8.6).
      if (status === 204 && (chunked || contentLength > 0)) this.fault = FRAMED_204
      this.#state = FIXED
      this.#remaining = 0
    } else if (chunked) {
      this.#chunks ??= new ChunkedDecoder()
      this.#chunks.reset(this.#maxBodyBytes)
      this.#state = CHUNKED
    } else if (contentLength === ABSENT) {
      this.#state = UNTIL_CLOSE
      this.#remaining = this.#maxBodyBytes
    } else {
      this.#state = FIXED
      this.#remaining = contentLength
      if (contentLength > this.#maxBodyBytes) this.fault = LONG_BODY
    }
  }

  #readFixed(from: number, to: number): number {
    if (this.fault !== null) return from
    const bytes = Math.min(this.#remaining, to - from)
    this.#remaining -= bytes
    this.dataTo = from + bytes
    if (this.#remaining === 0) this.#finish()
    return this.dataTo
  }

  #readChunks(buffer: Buffer, from: number, to: number): number {
    const chunks = this.#chunks!
    const at = chunks.decode(buffer, from, to)
    this.dataFrom = chunks.dataFrom
    this.dataTo = chunks.dataTo
    this.fault = chunks.fault
    if (chunks.done) this.#finish()
    return at
  }

  #readUntilClose(from: number, to: number): number {
    this.dataTo = Math.min(to, from + this.#remaining)
    this.#remaining -= this.dataTo - from
    if (this.dataTo < to) this.fault = LONG_BODY
    return this.dataTo
  }

  #finish(): void {
    this.#state = DONE
    this.done = true
  }
}
