/** Files that come compressed: an object store serves an object as it was put, whatever the client accepts. */
import { pipeline, type Readable, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}
/** `aws-chunked` is how an upload came; some stores keep it with the object. */
const PLAIN: readonly string[] = ['', 'identity', 'aws-chunked']

/** Returns the codings of a body, in the order in which they were applied. */
export const splitCodings = (contentEncoding: string): readonly string[] =>
  contentEncoding
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => !PLAIN.includes(coding))

export const isKnownCoding = (coding: string): boolean => Object.hasOwn(DECODERS, coding)

/** Returns the decoded body. An error of the body, or of a decoder, is one of the returned stream. */
export const decodeBody = (body: Readable, codings: readonly string[]): Readable =>
  codings.reduceRight<Readable>(
    (stream, coding) => pipeline(stream, DECODERS[coding]!(), () => undefined),
    body,
  )

/** Returns whether an error is a decoder's: of zlib, Brotli or Zstandard. */
export const isDecodingError = (error: unknown): boolean =>
  /^(?:Z_|ERR__|ZSTD_)/.test((error as NodeJS.ErrnoException).code ?? '')
