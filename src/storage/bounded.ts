/** A stream on its way into the store: counted while it passes, and broken off when it is too long or not wanted. */
import { addAbortSignal, Readable } from 'node:stream'
import { ObjectTooLarge, type PutOptions } from './store.ts'

/**
 * Yields pieces up to the limit. Throws `ObjectTooLarge` before the piece that exceeds it. Ending it early ends the
 * source too.
 */
export async function* limitBytes(
  content: Buffer | Readable,
  { maxBytes, signal }: Pick<PutOptions, 'maxBytes' | 'signal'>,
): AsyncGenerator<Buffer, void> {
  const source = Buffer.isBuffer(content) ? Readable.from([content]) : content
  if (signal !== undefined) addAbortSignal(signal, source)
  let length = 0
  for await (const piece of source as AsyncIterable<Buffer>) {
    length += piece.length
    if (length > maxBytes) throw new ObjectTooLarge(`The object is larger than ${maxBytes} bytes.`)
    yield piece
  }
}
