/** Replies in a coding that their client accepts. */
import { Buffer } from 'node:buffer'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FullReply } from '../../src/http/handler.ts'

/** A shorter body fits into one packet as it is. */
const MIN_COMPRESSED_BYTES = 1024
/** Beyond this quality, brotli takes longer than the bytes that it saves. */
const BROTLI_QUALITY = 4
const CODERS = {
  br: (bytes: Uint8Array) =>
    promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  gzip: (bytes: Uint8Array) => promisify(gzip)(bytes),
} as const

type Coding = keyof typeof CODERS

/** The weight of a coding that a client refuses. */
const NOT_ACCEPTED = /^q=0(?:\.0*)?$/i

export const acceptsCoding = (accepted: string, coding: Coding): boolean =>
  accepted.split(',').some((one) => {
    const [name, ...parameters] = one.split(';').map((part) => part.trim())
    return name === coding && !parameters.some((parameter) => NOT_ACCEPTED.test(parameter))
  })

/** Compresses the body of a reply by what the client's `accept-encoding` permits; a short one stays as it is. */
export async function compressReply(reply: FullReply, accepted: string): Promise<FullReply> {
  const headers = [...reply.headers, ['vary', 'accept-encoding'] as const]
  const coding = (['br', 'gzip'] as const).find((one) => acceptsCoding(accepted, one))
  const bytes = Buffer.from(reply.body)
  if (coding === undefined || bytes.length < MIN_COMPRESSED_BYTES) return { ...reply, headers }
  return {
    ...reply,
    headers: [...headers, ['content-encoding', coding]],
    body: await CODERS[coding](bytes),
  }
}
