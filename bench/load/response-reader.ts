/**
 * Reads HTTP/1.1 responses from one keep-alive connection, in pieces of any size. A body has a content-length or is
 * chunked; anything else is an error of the subject.
 */

const HEAD_LIMIT_BYTES = 16_384
const HEAD_END = Buffer.from('\r\n\r\n')
const CR = 13
const LF = 10

/** Called with the parts of a response. `body` gets views that are valid during the call only. */
interface ResponseSink {
  head(status: number): void
  body(piece: Buffer): void
  end(): void
}

type State = 'head' | 'fixed' | 'size' | 'chunk' | 'chunk-end' | 'trailer'

export class ResponseReader {
  readonly #sink: ResponseSink
  #state: State = 'head'
  /** The bytes of an unfinished head, or of an unfinished line between chunks. */
  #pending: Buffer | null = null
  #left = 0

  constructor(sink: ResponseSink) {
    this.#sink = sink
  }

  /** True between two responses. */
  get idle(): boolean {
    return this.#state === 'head' && this.#pending === null
  }

  /** Takes the next bytes. Throws on anything that is not a well-formed response. */
  read(piece: Buffer): void {
    let data = this.#pending ? Buffer.concat([this.#pending, piece]) : piece
    this.#pending = null
    while (data.length > 0) {
      const used = this.#step(data)
      if (used === 0) {
        if (data.length > HEAD_LIMIT_BYTES) throw new Error('a response head without end')
        this.#pending = Buffer.from(data)
        return
      }
      data = used === data.length ? data.subarray(0, 0) : data.subarray(used)
    }
  }

  /** Returns the bytes that the current state consumes; 0 when it needs more. */
  #step(data: Buffer): number {
    switch (this.#state) {
      case 'head':
        return this.#head(data)
      case 'fixed':
        return this.#content(data, 'head')
      case 'size':
        return this.#size(data)
      case 'chunk':
        return this.#content(data, 'chunk-end')
      case 'chunk-end':
        return this.#line(data, (length) => {
          if (length !== 0) throw new Error('a chunk longer than its size')
          this.#state = 'size'
        })
      case 'trailer':
        return this.#line(data, (length) => {
          if (length === 0) this.#finish()
        })
    }
  }

  #head(data: Buffer): number {
    const end = data.indexOf(HEAD_END)
    if (end < 0) return 0
    const head = data.toString('latin1', 0, end + 2)
    if (!head.startsWith('HTTP/1.1 ')) throw new Error(`not an HTTP/1.1 response: ${head.slice(0, 40)}`)
    this.#sink.head(Number(head.slice(9, 12)))
    const length = /\r\ncontent-length: *(\d+)\r\n/i.exec(head)
    if (length) {
      this.#left = Number(length[1])
      this.#state = 'fixed'
      if (this.#left === 0) this.#finish()
    } else if (/\r\ntransfer-encoding: *chunked\r\n/i.test(head)) this.#state = 'size'
    else throw new Error('a response with neither content-length nor chunks')
    return end + HEAD_END.length
  }

  #content(data: Buffer, after: 'head' | 'chunk-end'): number {
    const take = Math.min(this.#left, data.length)
    this.#sink.body(take === data.length ? data : data.subarray(0, take))
    this.#left -= take
    if (this.#left === 0) {
      if (after === 'head') this.#finish()
      else this.#state = after
    }
    return take
  }

  #size(data: Buffer): number {
    return this.#line(data, (length) => {
      const digits = data.toString('latin1', 0, length)
      if (!/^[0-9a-f]+$/i.test(digits)) throw new Error(`not a chunk size: ${digits.slice(0, 40)}`)
      this.#left = Number.parseInt(digits, 16)
      this.#state = this.#left === 0 ? 'trailer' : 'chunk'
    })
  }

  #line(data: Buffer, take: (length: number) => void): number {
    const end = data.indexOf(LF)
    if (end < 0) return 0
    if (data[end - 1] !== CR) throw new Error('a line without CR')
    take(end - 1)
    return end + 1
  }

  #finish(): void {
    this.#state = 'head'
    this.#sink.end()
  }
}
