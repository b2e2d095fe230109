/** Reads the first bytes of a stream and loses none of it. */
import { Buffer } from 'node:buffer'

interface PeekedStream {
  /** The requested number of bytes, or all when there are fewer. */
  readonly head: Buffer
  /** All of it, the head included. Read it once; stopping early stops the source. */
  readonly all: AsyncIterable<Buffer>
  /** Stops the source, for a caller that does not want the rest. */
  readonly stop: () => Promise<void>
}

export async function peekStream(source: AsyncIterable<Buffer>, bytes: number): Promise<PeekedStream> {
  const pieces = source[Symbol.asyncIterator]()
  const first: Buffer[] = []
  let length = 0
  while (length < bytes) {
    const { value, done } = await pieces.next()
    if (done) break
    first.push(value)
    length += value.length
  }
  const stop = async () => void (await pieces.return?.())
  async function* all() {
    try {
      yield* first.splice(0)
      yield* { [Symbol.asyncIterator]: () => pieces }
    } finally {
      await stop()
    }
  }
  return { head: Buffer.concat(first).subarray(0, bytes), all: all(), stop }
}
