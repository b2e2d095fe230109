/** Reads the form of a transcription. Its file is kept: a second attempt sends it again. */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { from } from 'rxjs'
import { Failure } from '../../schemas/failure.ts'
import type { FormFile } from '../../src/http/handler.ts'
import { readTranscription, type SoundFile } from '../../src/protocols/passed/transcriptions.ts'
import type { AuthenticatedCall } from '../calls/authenticate.ts'
import type { Stage } from '../calls/pipeline.ts'
import type { ReadCall } from './read-call.ts'

const FILE = 'file'
const LIMITS = { maxFields: 64, maxFieldBytes: 256 * 1024, maxFiles: 1, keepsFiles: true } as const

/** @throws Failure `invalid_request`, `service_unavailable` */
async function readForm({ request }: AuthenticatedCall) {
  const { form } = request
  if (!form) throw new Failure('invalid_request', 'Send a multipart form with the sound in its field file.')
  // Hashed piece by piece: at once, a long file would hold up all calls.
  const hash = request.hasHeader('idempotency-key') ? createHash('sha256') : null
  let file: SoundFile | null = null
  const keep = async ({ field, name, mediaType, content }: FormFile) => {
    if (field !== FILE)
      throw new Failure('invalid_request', `The form brings a file in ${JSON.stringify(field)}, not in file.`)
    const pieces: Buffer[] = []
    for await (const piece of content) {
      hash?.update(piece)
      pieces.push(piece)
    }
    file = { name, mediaType, bytes: Buffer.concat(pieces) }
  }
  const fields = await form.read(LIMITS, keep)
  // What is assigned in a function is not seen here.
  const found = file as SoundFile | null
  if (found === null || found.bytes.length === 0)
    throw new Failure('invalid_request', 'The form brings no sound in its field file.')
  return { fields, file: found, sha256: hash?.digest('hex') }
}

/** Adds the request that was read. @throws Failure that names what is wrong with the form */
export const readSound =
  <C extends AuthenticatedCall>(): Stage<C, C & ReadCall> =>
  (call: C) => {
    const read = async (): Promise<C & ReadCall> => {
      const { fields, file, sha256 } = await readForm(call)
      const transcription = readTranscription(fields, file)
      // A form has another boundary each time that it is sent.
      const meaning = sha256 === undefined ? undefined : { fields, name: file.name, sha256 }
      return { ...call, meaning, protocol: 'audio_transcriptions', call: transcription }
    }
    return from(read())
  }
