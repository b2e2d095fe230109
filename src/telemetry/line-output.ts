/** Writes the lines of a log, without waiting for what reads them. A log that cannot be written must not stop the service. */
import { Buffer } from 'node:buffer'
import { fstatSync, openSync, write, writeSync } from 'node:fs'
import { performance } from 'node:perf_hooks'

/** Lines wait at most this long, or until there are so many. */
const WRITE_INTERVAL_MS = 100
const ENOUGH_BYTES = 2048
/** Writes up to this size are not torn apart on a pipe that several processes share (pipe(7), PIPE_BUF). */
const WRITE_BYTES = 4096
/** While the other end takes no lines, lines above this limit are dropped. */
const WAITING_MAX_BYTES = 4 * 1024 * 1024
/** How long a flush waits for a slow reader. It does not wait for one that is gone. */
const FLUSH_BOUND_MS = 1_000
const FLUSH_PAUSE_MS = 10

const isSlow = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EAGAIN'

const pauseHere = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

export class LineOutput {
  readonly #fd: number
  /** It takes lines at once, in their order. The reader of a pipe may be slow. */
  readonly #isFile: boolean
  #waiting: Buffer[] = []
  #waitingBytes = 0
  #timer: NodeJS.Timeout | null = null
  #isWriting = false

  /** Writes to a file descriptor, or appends to a file. */
  constructor(destination: number | string) {
    this.#fd = typeof destination === 'number' ? destination : openSync(destination, 'a')
    this.#isFile = fstatSync(this.#fd).isFile()
  }

  write(line: string): void {
    const bytes = Buffer.from(line)
    if (this.#waitingBytes + bytes.length > WAITING_MAX_BYTES) return
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
    if (this.#waitingBytes >= ENOUGH_BYTES) this.#writeNext()
    else this.#writeLater()
  }

  /** Writes what waits; returns when it is out, or cannot be written. */
  flush(): void {
    const deadline = performance.now() + FLUSH_BOUND_MS
    for (let piece = this.#take(); piece !== null; piece = this.#take())
      try {
        this.#putBack(piece.subarray(writeSync(this.#fd, piece)))
      } catch (error) {
        if (!isSlow(error) || performance.now() > deadline) return
        this.#putBack(piece)
        pauseHere(FLUSH_PAUSE_MS)
      }
  }

  #writeLater(): void {
    this.#timer ??= setTimeout(() => this.#writeNext(), WRITE_INTERVAL_MS).unref()
  }

  #writeNext(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    if (this.#isFile) return this.flush()
    if (this.#isWriting) return
    const piece = this.#take()
    if (piece === null) return
    this.#isWriting = true
    write(this.#fd, piece, (error, written) => {
      this.#isWriting = false
      if (error === null) this.#putBack(piece.subarray(written))
      else if (isSlow(error)) {
        this.#putBack(piece)
        return this.#writeLater()
      }
      this.#writeNext()
    })
  }

  /** Takes whole lines that go into one write, or a longer line. */
  #take(): Buffer | null {
    let count = 0
    let bytes = 0
    for (const { length } of this.#waiting) {
      if (count > 0 && bytes + length > WRITE_BYTES) break
      bytes += length
      count++
    }
    if (count === 0) return null
    this.#waitingBytes -= bytes
    return Buffer.concat(this.#waiting.splice(0, count))
  }

  #putBack(rest: Buffer): void {
    if (rest.length === 0) return
    this.#waiting.unshift(rest)
    this.#waitingBytes += rest.length
  }
}
