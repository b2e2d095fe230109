/** A look at the first bytes of a stream, of which nothing is lost by it. */

export interface Peeked {
  /** As many as were asked for, or all there are. */
  readonly head: Buffer
  /** All of it, the head included. To be read once; whoever stops reading it stops the source. */
  readonly all: AsyncGenerator<Buffer, void>
}

export async function peeked(source: AsyncIterable<Buffer>, bytes: number): Promise<Peeked> {
  const pieces = source[Symbol.asyncIterator]()
  const first: Buffer[] = []
  let length = 0
  while (length < bytes) {
    const { value, done } = await pieces.next()
    if (done) break
    first.push(value)
    length += value.length
  }
  async function* all() {
    try {
      yield* first.splice(0)
      yield* { [Symbol.asyncIterator]: () => pieces }
    } finally {
      await pieces.return?.()
    }
  }
  return { head: Buffer.concat(first).subarray(0, bytes), all: all() }
}
