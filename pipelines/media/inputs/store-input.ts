/**
 * Stores the files of a request in the object store for a day, however they come. Only their first bytes tell the type.
 * See docs/api-rules.md, "Files and link lifetimes".
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { Failure } from '../../../schemas/failure.ts'
import { INPUT_LIFETIME_MS, type StoredFileRef } from '../../../schemas/media/job.ts'
import { peekStream } from '../../../src/core/media/peeked.ts'
import { findExtension, SNIFF_BYTES, sniffMediaType } from '../../../src/core/media/type.ts'
import { isDataUri, readDataUri } from '../../../src/protocols/translate/data-uri.ts'
import type { FileWriter } from '../../../src/storage/store.ts'
import type { Upload } from './uploads.ts'

const MAX_NAME_CHARS = 100
const BYTES_PER_MIB = 1024 * 1024

export interface InputRecords {
  /** Records which objects are to be removed, and when. */
  recordObjects(objects: readonly { readonly key: string; readonly expiresAt: number }[]): Promise<void>
}

export interface InputStore {
  readonly files: FileWriter
  readonly objects: InputRecords
  /** Epoch milliseconds. */
  readonly now?: () => number
}

export interface AcceptedFiles {
  readonly mediaTypes: readonly string[]
  /** Their name in a refusal. */
  readonly noun: string
  /** The limit of each file. */
  readonly maxBytes: number
}

export const ACCEPTED_IMAGES: AcceptedFiles = {
  mediaTypes: ['image/png', 'image/jpeg', 'image/webp', 'image/gif'],
  noun: 'a PNG, JPEG, WebP or GIF image',
  maxBytes: 64 * BYTES_PER_MIB,
}

export interface StoredInput {
  readonly file: StoredFileRef
  readonly sha256: Buffer
}

interface Incoming {
  /** The upload of its request. */
  readonly upload: Upload
  /** Its index among the files of the request, part of its key. */
  readonly requestId: string
  readonly number: number
  /** Its field, as a refusal names it. */
  readonly field: string
  /** The client's name for it; may be empty. */
  readonly name: string
  readonly content: AsyncIterable<Buffer>
}

/** Removes folders and characters that a header cannot carry. */
function makeName({ name, number }: Incoming, extension: string): string {
  const last = name
    .slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\')) + 1)
    .replace(/[^\p{L}\p{N}._ -]+/gu, '_')
  const own = [...last].slice(-MAX_NAME_CHARS).join('')
  return own === '' ? `file-${number}.${extension}` : own
}

/** Stores a file. @throws Failure if it is not accepted or too large: nothing of it stays */
export async function storeInput(
  { files, objects, now = Date.now }: InputStore,
  incoming: Incoming,
  accepted: AcceptedFiles,
): Promise<StoredInput> {
  const { requestId, number, field, upload } = incoming
  const { head, all, stop } = await peekStream(incoming.content, SNIFF_BYTES)
  const mediaType = sniffMediaType(head) ?? ''
  if (!accepted.mediaTypes.includes(mediaType)) {
    await stop()
    const fault = head.length === 0 ? 'empty' : `not ${accepted.noun}`
    throw new Failure('invalid_request', `The file in ${field} is ${fault}.`)
  }
  const extension = findExtension(mediaType) ?? 'bin'
  const key = `inputs/${requestId}-${number}.${extension}`
  const hash = createHash('sha256')
  async function* hashPieces() {
    for await (const piece of all) {
      upload.count(piece.length)
      hash.update(piece)
      yield piece
    }
  }
  const { maxBytes } = accepted
  const put = async () => {
    await objects.recordObjects([{ key, expiresAt: now() + INPUT_LIFETIME_MS }])
    return files.put(key, Readable.from(hashPieces(), { objectMode: false }), { mediaType, maxBytes })
  }
  const { bytes } = await put().catch((error: Error) => {
    throw toStoreFailure(error, tooLarge(field, maxBytes))
  })
  await upload.noteStored(key)
  const file: StoredFileRef = {
    from: 'store',
    key,
    media_type: mediaType,
    bytes,
    name: makeName(incoming, extension),
  }
  return { file, sha256: hash.digest() }
}

/** Returns the error for a file that could not be stored. Errors of store and database are not the client's fault. */
export function toStoreFailure(error: Error, tooLarge: Failure): Failure {
  if (error instanceof Failure) return error
  if (error.name === 'ObjectTooLarge') return tooLarge
  const message = 'Files cannot be stored at the moment. Try again in a minute.'
  return new Failure('service_unavailable', message, { internal: `input file: ${error.message}` })
}

const tooLarge = (field: string, maxBytes: number): Failure =>
  new Failure('request_too_large', `The file in ${field} is larger than ${maxBytes / BYTES_PER_MIB} MiB.`)

/** Stores an inline file of a request. @throws Failure as `storeInput` does */
export async function storeDataUri(
  deps: InputStore,
  { uri, ...place }: Pick<Incoming, 'upload' | 'requestId' | 'number' | 'field'> & { readonly uri: string },
  accepted: AcceptedFiles,
): Promise<StoredFileRef> {
  const inline = isDataUri(uri) ? readDataUri(uri) : null
  if (inline === null)
    throw new Failure('invalid_request', `${place.field} is not a data URI with a media type and base64.`)
  const content = Readable.from([Buffer.from(inline.base64, 'base64')])
  return (await storeInput(deps, { ...place, name: '', content }, accepted)).file
}
