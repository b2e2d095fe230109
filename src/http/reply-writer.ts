/**
 * Writes one reply. Every write is corked; the head waits for the first data, so that both leave in one piece; a
 * client that reads slowly pauses the upstream. After an abort or the end the response is never touched again. The
 * server buffers the bytes that the kernel does not take, without a bound and without reporting their number. So after
 * a partial write, one byte goes first, and the rest only when that byte was taken: at most one read of the upstream
 * waits in the server and one here. A whole reply waits here, where replies of one page share its bytes: the server takes no
 * byte of it while earlier ones wait, and closes a connection that sends another request meanwhile.
 */

import { Buffer } from 'node:buffer'
import type { Observer } from 'rxjs'
import type { DataSink, Flow, FullReply, HeaderList, Reply } from './handler.ts'
import { BODILESS, makeStreamHead, makeWholeHead, printStatusLine, toBuffer } from './reply-form.ts'
import { restartTimeout } from './request-reader.ts'
import type { HttpResponse } from './uws.ts'

const OK = 200
/** The name of a field behind the last chunk of a body; its value and one more line end are the end of the reply. */
const LAST_CHUNK = '\r\n0\r\nx-gateway-trace'
/**
 * The server buffers heads without a bound and does not tell: while many requests come at once, one in so many replies
 * without a body, by chance, is the last on its connection.
 */
const BODILESS_REPLIES_OF_CONNECTION = 32

/** The most that the server gets at once: it keeps in memory what the kernel does not take. */
const MAX_WRITE_BYTES = 256 * 1024

/** A client that takes nothing of its reply for this long counts as disconnected. */
const MAX_STALL_MS = 60_000
/** A client has this long to read the end of a reply that is the last on its connection. */
const LINGER_MS = 2000
/** Shorter than the 10 s after which the server would close the connection. */
const STALL_TICK_MS = 4000

/** The request that is answered. */
export interface AnsweredRequest {
  readonly response: HttpResponse
  /** Header lines that every reply has, and behind them the name of the first header that holds its request's id. */
  readonly commonHeaders: Uint8Array
  readonly requestId: string
  /** The request's method was HEAD: the reply has no body. */
  readonly isHead: boolean
  /**
   * No later request on the connection may be answered. The reply has `connection: close` and ends after the server
   * has read all received bytes: until then, another request makes the server drop the connection.
   */
  readonly closesConnection: boolean
  /**
   * Returns false while more of the body is on its way: an immediate reply then keeps the connection open for a
   * moment. Closed with unread bytes, it would be reset, and the client would lose the answer.
   */
  isBodyWhole(): boolean
  /** Returns whether more requests come at once than clients send that read their answers. */
  isCrowded(): boolean
  renderError(error: unknown): FullReply
  /** Called once, when the reply is over or the client has left. */
  onClosed(): void
  /** Called when the first byte is written. */
  onFirstByte(): void
}

const isConnection = (header: HeaderList[number]): boolean => header[0] === 'connection'

export class ReplyWriter implements Observer<Reply>, DataSink {
  /** The writer and bytes of the corked write: one function for all replies, so that a chunk allocates no closure. */
  static #writing: ReplyWriter | null = null
  static #bytes: Uint8Array | string = ''
  static readonly #corked = (): void => ReplyWriter.#writing!.#writeCorked(ReplyWriter.#bytes)

  // The fields that every chunk touches are first.
  #isClosed = false
  /** Writes wait for the client; the upstream is paused. */
  #isPaused = false
  /** Bytes of the body, where they are known beforehand. */
  #length: number | null = null
  readonly #response: HttpResponse
  #head: { status: number; headers: HeaderList; requestId?: string } | null = null
  /** The server may still buffer earlier bytes. */
  #mayBeBuffered = false

  readonly #request: AnsweredRequest
  /** As the head has it. */
  #requestId: string
  #flow: Flow | null = null
  #hasWritten = false
  /** Bytes that arrived while paused. */
  #waiting: Buffer[] = []
  /** The reply ends after the waiting bytes. */
  #isEnding = false
  /** It ends unfinished: its connection is closed, and HTTP's mark of the end is left out. */
  #isCutOff = false
  #stallTimer: NodeJS.Timeout | null = null
  #stalledMs = 0
  /** The reply has ended or is cut off, and its connection is about to end. */
  #linger: NodeJS.Timeout | null = null

  constructor(request: AnsweredRequest) {
    this.#request = request
    this.#requestId = request.requestId
    this.#response = request.response
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Called when the client has left: nothing more is written. */
  abort(): void {
    if (this.#linger !== null) clearTimeout(this.#linger)
    this.#linger = null
    if (!this.#isClosed) this.#close()
  }

  next(reply: Reply): void {
    if (this.#isClosed) return
    switch (reply.type) {
      case 'full':
        this.#writeReply(this.#request.isHead ? makeWholeHead(reply) : reply)
        break
      case 'head':
        if (this.#request.isHead) return this.#writeReply(makeStreamHead(reply))
        this.#head = reply
        this.#flow = reply.flow
        this.#length = reply.length ?? null
        reply.direct?.(this)
        break
      case 'data':
        this.data(reply.bytes)
        break
    }
  }

  error(error: unknown): void {
    if (this.#isClosed) return
    // It is also what logs the error.
    const reply = this.#request.renderError(error)
    if (!this.#hasWritten) return this.#writeReply(this.#request.isHead ? makeWholeHead(reply) : reply)
    this.#isCutOff = true
    this.complete()
  }

  /**
   * Answers and cuts the connection. The reply stays without an end: the server drops a connection on which another
   * request follows an unfinished one, so that nothing after this one is read.
   */
  cut(error: unknown): void {
    const { body, ...head } = this.#request.renderError(error)
    this.#head = head
    this.#isEnding = true
    this.#write(body)
    this.#closeLater()
  }

  /**
   * Closes the connection once what was written in this turn has left. The server does not say when its buffer is empty:
   * a client that reads slowly has until it takes nothing for a while.
   */
  #closeLater(): void {
    const close = () => {
      if (!this.#isClosed) this.#response.close()
    }
    if (!this.#mayBeBuffered) return void setImmediate(close)
    if (this.#linger !== null) clearTimeout(this.#linger)
    this.#linger = setTimeout(close, LINGER_MS)
  }

  complete(): void {
    if (this.#isClosed || this.#isEnding) return
    this.#isEnding = true
    if (!this.#isPaused) this.#end()
  }

  /**
   * Ends a streamed reply and its connection. The server has no call for that, so the last chunk is written in its
   * wire form, with a trailer field; for the server the reply is not over, and any further bytes end the connection.
   */
  #endConnection(lastField: string, value: string): void {
    this.#response.cork(() => {
      this.#writeHead()
      this.#response.writeHeader(lastField, `${value}\r\n`)
    })
    this.#linger = setTimeout(() => this.#response.close(), LINGER_MS)
    this.#close()
  }

  #end(): void {
    // A body of a known length has ended with its last byte: this one is shorter than its head announced.
    if (this.#isCutOff || this.#length !== null) return this.#closeLater()
    if (this.#request.closesConnection) {
      if (this.#hasWritten || this.#head === null) this.#endConnection(LAST_CHUNK, this.#requestId)
      else this.#writeReply({ ...this.#head, type: 'full', body: '' })
      return
    }
    this.#response.cork(() => {
      this.#writeHead()
      this.#response.end()
    })
    this.#close()
  }

  /** The last reply of a connection waits for a turn: the server answers what was read behind it by closing the connection. */
  #writeReply(reply: FullReply): void {
    const closesConnection = this.#request.closesConnection
    const isLast = closesConnection || reply.headers.some(isConnection) || this.#isChosen(reply)
    if (!isLast) return this.#writeFull(reply, false)
    this.#isEnding = true
    setImmediate(() => {
      if (this.#isClosed) return
      const isLong = reply.body.length > MAX_WRITE_BYTES
      const isBefore = isLong || (!this.#request.isBodyWhole() && reply.body.length > 0)
      if (closesConnection && isBefore) this.#writeBeforeEnd(reply)
      else this.#writeFull(reply, true)
    })
  }

  /** Returns whether a reply without a body is the last one of its connection. */
  #isChosen({ body }: FullReply): boolean {
    if (body.length > 0 || !this.#request.isCrowded()) return false
    return Math.random() * BODILESS_REPLIES_OF_CONNECTION < 1
  }

  /** Answers as a stream does, so that the client has time to read before the end. */
  #writeBeforeEnd({ status, headers, body }: FullReply): void {
    const others = headers.filter((header) => !isConnection(header))
    this.#head = { status, headers: [...others, ['connection', 'close']] }
    this.data(body)
    if (!this.#isPaused) this.#end()
  }

  #writeFull(reply: FullReply, isLast: boolean): void {
    const { body, headers, status } = reply
    this.#head = isLast ? { ...reply, headers: headers.filter((header) => !isConnection(header)) } : reply
    const isBodiless = this.#request.isHead || BODILESS.has(status)
    if (!isLast && !isBodiless && body.length > 0) return this.#writeWhole(body)
    if (isBodiless && isLast) return this.#endConnection('connection', 'close')
    this.#response.cork(() => {
      this.#writeHead()
      // Without any argument: given a length, the server waits for a body that never comes; undefined it takes for one.
      if (isBodiless) this.#response.endWithoutBody()
      else this.#response.end(body, isLast)
    })
    this.#close()
  }

  /** Writes the head and as much of the body as the connection takes now; the rest follows. */
  #writeWhole(body: string | Uint8Array): void {
    const length = Buffer.byteLength(body)
    if (this.#writeWithin(length, body)) return
    this.#length = length
    this.#pause()
  }

  data(bytes: Uint8Array | string): void {
    if (this.#isClosed) return
    // What is not taken at once waits here.
    const isKept = this.#isPaused || this.#length !== null || bytes.length > MAX_WRITE_BYTES
    const own = isKept ? Buffer.from(bytes as Uint8Array) : bytes
    if (this.#isPaused) this.#waiting.push(own as Buffer)
    else if (!this.#write(own)) this.#pause()
  }

  /** Writes; returns true when everything has been taken, earlier bytes included. Long bytes are the writer's own. */
  #write(bytes: Uint8Array | string): boolean {
    if (this.#length !== null) return this.#writeWithin(this.#length, bytes as Buffer)
    if (bytes.length <= MAX_WRITE_BYTES) return this.#writePiece(bytes)
    for (let at = 0; at < bytes.length; at += MAX_WRITE_BYTES) {
      if (this.#writePiece((bytes as Buffer).subarray(at, at + MAX_WRITE_BYTES))) continue
      const rest = (bytes as Buffer).subarray(at + MAX_WRITE_BYTES)
      if (rest.length > 0) this.#waiting.push(rest)
      return false
    }
    return true
  }

  #writePiece(bytes: Uint8Array | string): boolean {
    ReplyWriter.#writing = this
    ReplyWriter.#bytes = bytes
    this.#response.cork(ReplyWriter.#corked)
    ReplyWriter.#writing = null
    ReplyWriter.#bytes = ''
    return !this.#mayBeBuffered
  }

  #writeCorked(bytes: Uint8Array | string): void {
    if (this.#head !== null) this.#writeHead()
    this.#mayBeBuffered = this.#mayBeBuffered
      ? !this.#writeAfterProbeByte(Buffer.from(bytes as Uint8Array))
      : !this.#response.write(bytes)
  }

  /**
   * Writes a part of a body of a known length. The server buffers nothing of such a body: the bytes that the kernel
   * does not take wait here.
   */
  #writeWithin(length: number, bytes: string | Uint8Array): boolean {
    let isTaken = true
    let isOver = false
    this.#response.cork(() => {
      const before = this.#head === null ? this.#response.getWriteOffset() : 0
      this.#writeHead()
      const [isWhole, hasEnded] = this.#response.tryEnd(bytes, length)
      isTaken = isWhole
      isOver = hasEnded
      if (!isWhole) this.#waiting.push(toBuffer(bytes).subarray(this.#response.getWriteOffset() - before))
    })
    if (isOver) this.#close()
    return isTaken || isOver
  }

  #writeAfterProbeByte(bytes: Buffer): boolean {
    const isTaken = this.#response.write(bytes.subarray(0, 1))
    const rest = bytes.subarray(1)
    if (rest.length === 0) return isTaken
    if (isTaken) return this.#response.write(rest)
    this.#waiting.push(Buffer.from(rest))
    return false
  }

  #writeHead(): void {
    const head = this.#head
    if (head === null) return
    this.#head = null
    this.#hasWritten = true
    // Names and values are written unchanged: all headers in one need one call into the server. It writes 200 by
    // default.
    const id = head.requestId ?? this.#requestId
    this.#requestId = id
    let value = `${id}\r\nx-request-id: ${id}\r\nrequest-id: ${id}`
    for (const header of head.headers) value += `\r\n${header[0]}: ${header[1]}`
    if (this.#request.closesConnection && !this.#isEnding) value += '\r\nconnection: close'
    if (head.status !== OK) this.#response.writeStatus(printStatusLine(head.status))
    this.#response.writeHeader(this.#request.commonHeaders, value)
    this.#request.onFirstByte()
  }

  #pause(): void {
    this.#isPaused = true
    this.#flow?.pause()
    this.#stallTimer ??= setInterval(() => this.#checkStall(), STALL_TICK_MS)
    this.#response.onWritable(() => {
      if (!this.#isClosed) this.#drain()
      else if (this.#linger !== null) this.#response.cork(() => undefined)
      return true
    })
  }

  /**
   * Called when the client has taken bytes. The server's buffer leaves only with a write; an empty corked one
   * suffices.
   */
  #drain(): void {
    this.#stalledMs = 0
    const waiting = this.#waiting
    this.#waiting = []
    if (waiting.length === 0) this.#response.cork(() => undefined)
    else if (!this.#write(waiting.length === 1 ? waiting[0]! : Buffer.concat(waiting))) return
    if (this.#isClosed) return
    if (!this.#isPaused) {
      if (this.#linger !== null) this.#closeLater()
      return
    }
    this.#isPaused = false
    this.#stopStallTimer()
    if (this.#isEnding) this.#end()
    else this.#flow?.resume()
  }

  /** Checks for a stall. The server itself closes a connection whose client takes nothing for 10 s. */
  #checkStall(): void {
    this.#stalledMs += STALL_TICK_MS
    if (this.#stalledMs >= MAX_STALL_MS) this.#response.close()
    else restartTimeout(this.#response)
  }

  #stopStallTimer(): void {
    if (this.#stallTimer !== null) clearInterval(this.#stallTimer)
    this.#stallTimer = null
  }

  #close(): void {
    this.#isClosed = true
    this.#waiting = []
    this.#stopStallTimer()
    this.#request.onClosed()
  }
}
