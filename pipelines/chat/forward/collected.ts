import { Buffer } from 'node:buffer'

/** Bytes of one answer, kept until it is whole. */
export class Collected {
  readonly #pieces: Buffer[] = []
  length = 0

  add(bytes: Buffer): void {
    this.#pieces.push(Buffer.from(bytes))
    this.length += bytes.length
  }

  all(): Buffer {
    return this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces, this.length)
  }
}
