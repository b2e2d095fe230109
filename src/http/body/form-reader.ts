/** Reads a multipart form as it comes: fields whole, files as streams, one after the other. */
import { Buffer } from 'node:buffer'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import busboy from 'busboy'
import { Failure } from '../../../schemas/failure.ts'
import { cutText } from '../../core/json/cut.ts'
import type { HeldBytes } from '../client-limits.ts'
import type { FormContent, FormLimits, TakeFile } from '../handler.ts'
import { tooLarge } from '../refusals.ts'
import { BodyTooLarge } from './upload.ts'

const MAX_SHOWN_CHARS = 100
const MAX_HEADERS_PER_PART = 16
const BYTES_PER_KIB = 1024

const refuse = (message: string): Failure => new Failure('invalid_request', message)

export const isFormType = (contentType: string): boolean =>
  /^multipart\/form-data\s*(?:;|$)/i.test(contentType)

interface FormOptions {
  readonly contentType: string
  /** Of the whole form. */
  readonly limitBytes: number
  /** Counts the memory of the fields. */
  readonly held: Pick<HeldBytes, 'take'>
}

export const formContent = (body: Readable, options: FormOptions): FormContent => ({
  read: (limits, takeFile) => readForm(body, options, limits, takeFile),
})

async function readForm(
  body: Readable,
  { contentType, held, limitBytes }: FormOptions,
  limits: FormLimits,
  takeFile: TakeFile,
): Promise<Array<readonly [string, string]>> {
  const fields: Array<readonly [string, string]> = []
  const taken: Array<Promise<void>> = []
  const parser = makeParser(contentType, limits)
  // The parser keeps a field until its end, and reports none before.
  const refusal = held.take(limits.maxFieldBytes)
  if (refusal !== null) throw refusal
  const stop = (error: unknown) => void parser.destroy(error as Error)
  /** The error of the one who takes the files, where that ends the form: it is not about the form. */
  let untaken: unknown
  // A part may have no name. A parser that is stopped still reports the rest of the piece at hand, of which a file would
  // never end.
  parser.on('field', (name: string | undefined, value, { valueTruncated }) => {
    if (parser.destroyed) return
    if (name === undefined) return stop(refuse(NAMELESS))
    if (valueTruncated) return stop(refuse(tooLong(name, limits)))
    const full = held.take(Buffer.byteLength(name) + Buffer.byteLength(value))
    if (full !== null) return stop(full)
    fields.push([name, value])
  })
  parser.on('file', (name: string | undefined, content, { filename, mimeType }) => {
    // The reader of the file reports it; an error of the form also ends its file.
    content.on('error', () => undefined)
    if (parser.destroyed) return
    if (name === undefined) return stop(refuse(NAMELESS))
    const pieces = limits.keepsFiles === true ? holdPieces(content, held) : content
    const work = takeFile({ field: name, name: filename ?? '', mediaType: mimeType, content: pieces }, fields)
    work.catch((error: unknown) => {
      // Of a form that has ended already, its files have ended with the same error.
      if (!parser.destroyed) untaken = error
      stop(error)
    })
    taken.push(work)
  })
  parser.on('fieldsLimit', () => stop(refuse(`The form has more than ${limits.maxFields} fields.`)))
  parser.on('filesLimit', () => stop(refuse(`The form has more than ${limits.maxFiles} files.`)))
  try {
    await pipeline(body, parser)
    await Promise.all(taken)
    return fields
  } catch (error) {
    await Promise.allSettled(taken)
    throw error === untaken ? error : toClientError(error, limitBytes)
  }
}

/** Counts the memory of a file that its reader keeps. @throws Failure where there is no room */
async function* holdPieces(content: Readable, held: FormOptions['held']): AsyncGenerator<Buffer> {
  for await (const piece of content as AsyncIterable<Buffer>) {
    const full = held.take(piece.length)
    if (full !== null) throw full
    yield piece
  }
}

function makeParser(contentType: string, limits: FormLimits): busboy.Busboy {
  try {
    return busboy({
      headers: { 'content-type': contentType },
      defParamCharset: 'utf8',
      preservePath: limits.keepsFolders === true,
      limits: {
        fieldSize: limits.maxFieldBytes,
        fields: limits.maxFields,
        files: limits.maxFiles,
        headerPairs: MAX_HEADERS_PER_PART,
      },
    })
  } catch (error) {
    throw refuse(`The form cannot be read: ${(error as Error).message}.`)
  }
}

const NAMELESS = 'A part of the form has no name.'

const tooLong = (name: string, { maxFieldBytes }: FormLimits): string =>
  `The field ${cutText(name, MAX_SHOWN_CHARS)} of the form is longer than ${maxFieldBytes / BYTES_PER_KIB} KiB.`

function toClientError(error: unknown, limitBytes: number): unknown {
  if (error instanceof Failure) return error
  if (error instanceof BodyTooLarge) return tooLarge(limitBytes)
  return refuse(`The form cannot be read: ${(error as Error).message}.`)
}
