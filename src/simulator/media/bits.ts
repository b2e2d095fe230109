/** Writes numbers of any width, the highest bit first, and the codes of video headers that have no fixed width. */

const BITS_PER_BYTE = 8

export class BitWriter {
  readonly #bytes: number[] = []
  #partial = 0
  #used = 0

  /** A number of `width` bits, at most 32. */
  bits(value: number, width: number): this {
    for (let bit = width - 1; bit >= 0; bit -= 1) {
      this.#partial = (this.#partial << 1) | ((value >>> bit) & 1)
      this.#used += 1
      if (this.#used === BITS_PER_BYTE) this.#flush()
    }
    return this
  }

  /** An unsigned Exp-Golomb code: ue(v) of ITU-T H.264, 9.1. */
  unsigned(value: number): this {
    const width = 32 - Math.clz32(value + 1)
    return this.bits(0, width - 1).bits(value + 1, width)
  }

  /** Zeros up to the next byte. */
  align(): this {
    return this.#used === 0 ? this : this.bits(0, BITS_PER_BYTE - this.#used)
  }

  /** Whole bytes, from a byte's beginning. */
  bytes(data: Uint8Array): this {
    for (const byte of data) this.#bytes.push(byte)
    return this
  }

  /** What was written, its last byte filled up with zeros. */
  buffer(): Buffer {
    this.align()
    return Buffer.from(this.#bytes)
  }

  #flush(): void {
    this.#bytes.push(this.#partial)
    this.#partial = 0
    this.#used = 0
  }
}
