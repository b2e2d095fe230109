/** Request bodies that come compressed. They are decoded by the threads of `node:zlib`, not on the event loop. */
import { Buffer } from 'node:buffer'
import { pipeline, Readable, type Transform } from 'node:stream'
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from 'node:zlib'
import { Failure } from '../../../schemas/failure.ts'
import type { HeldBytes } from '../client-limits.ts'
import { tooLarge } from '../refusals.ts'
import { BodyTooLarge } from './upload.ts'

/** As large as HTTP lets a window be (RFC 9659): 8 MiB. */
const ZSTD_WINDOW_LOG_MAX = 23
const DECODERS = {
  gzip: createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX } }),
} as const satisfies Record<string, () => Transform & { readonly bytesWritten: number }>

export type Coding = keyof typeof DECODERS

/** Above `FREE_BYTES`, a body may become at most this many times as long. */
export const MAX_RATIO = 100
const FREE_BYTES = 1024 * 1024

/**
 * Returns the coding of a body; null where it is not compressed.
 * @throws Failure for an unknown coding, and for two of them
 */
export function findCoding(contentEncoding: string): Coding | null {
  const name = contentEncoding.toLowerCase()
  if (name === '' || name === 'identity') return null
  if (Object.hasOwn(DECODERS, name)) return name as Coding
  if (name === 'x-gzip') return 'gzip'
  throw new Failure(
    'unsupported_content_encoding',
    'The Content-Encoding of the request body must be one of gzip, deflate, br and zstd.',
    { headers: [['accept-encoding', Object.keys(DECODERS).join(', ')]] },
  )
}

interface DecodingLimits {
  /** Of the decoded body. */
  readonly limitBytes: number
  /** Of the body as it comes, where that is known beforehand; else 0. */
  readonly encodedBytes: number
}

/**
 * Decodes a body, no faster than it is read. For a truncated zstd frame returns its beginning: `node:zlib` does not
 * report it.
 * @throws Failure for a body in another coding, one over the limit, or one that expands too far; and any error of
 *   `body`
 */
export async function* decodePieces(
  body: Readable,
  coding: Coding,
  { limitBytes, encodedBytes }: DecodingLimits,
): AsyncGenerator<Buffer> {
  const decoder = DECODERS[coding]()
  // Errors reach the loop below.
  pipeline(body, decoder, () => undefined)
  let length = 0
  try {
    for await (const piece of decoder as AsyncIterable<Buffer>) {
      length += piece.length
      if (length > limitBytes) throw tooLarge(limitBytes)
      if (length > FREE_BYTES && length > MAX_RATIO * Math.max(encodedBytes, decoder.bytesWritten))
        throw new Failure(
          'invalid_request',
          `The request body expands to more than ${MAX_RATIO} times its size.`,
        )
      yield piece
    }
  } catch (error) {
    if (error instanceof Failure || error instanceof BodyTooLarge) throw error
    throw new Failure('invalid_request', `The request body is not valid ${coding}.`, {
      internal: (error as Error).message,
    })
  }
}

/** Decodes a whole body at once, as `decoded` does. `held` counts its memory. */
export async function decodeWhole(
  body: Buffer,
  coding: Coding,
  limitBytes: number,
  held: Pick<HeldBytes, 'take'>,
): Promise<Buffer> {
  if (body.length === 0) return body
  const pieces: Buffer[] = []
  const limits = { limitBytes, encodedBytes: body.length }
  for await (const piece of decodePieces(Readable.from([body]), coding, limits)) {
    const refusal = held.take(piece.length)
    if (refusal !== null) throw refusal
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}
