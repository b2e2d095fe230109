/** Reads requests: bodies up to a limit, forms with files (RFC 7578), and JSON by a schema. */

import type { IncomingMessage } from 'node:http'
import { finished } from 'node:stream/promises'
import busboy from 'busboy'
import type { z } from 'zod'
import { SimulatedFailure } from './dialect.ts'

/** 64 MiB of files as data URIs, and the rest of the request. */
const MAX_BODY_BYTES = 96 * 1024 * 1024
export class BodyTooLargeError extends Error {}

/**
 * Reads the whole body.
 *
 * @throws {BodyTooLargeError} beyond 96 MiB; the rest of the body is discarded.
 * @throws {Error} when the caller leaves before its end.
 */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk)
    else chunks.length = 0
  }
  if (bytes > MAX_BODY_BYTES) throw new BodyTooLargeError(`The body is larger than ${MAX_BODY_BYTES} bytes.`)
  return Buffer.concat(chunks)
}

const MAX_PARTS = 100

type FormPart = {
  readonly name: string
  /** Null if the part is not a file. */
  readonly fileName: string | null
  readonly type: string | null
  readonly data: Buffer
}

export class Form {
  readonly #parts: readonly FormPart[]

  constructor(parts: readonly FormPart[]) {
    this.#parts = parts
  }

  /** Returns the fields that are not files; of repeated ones the last. */
  fields(): Record<string, string> {
    const fields = this.#parts.filter(({ fileName }) => fileName === null)
    return Object.fromEntries(fields.map(({ name, data }) => [name, data.toString('utf8')]))
  }

  /** Returns the files with any of these names, in order. */
  files(...names: readonly string[]): FormPart[] {
    return this.#parts.filter(({ name, fileName }) => fileName !== null && names.includes(name))
  }
}

/** The body is not a form, or ends early. */
export class FormError extends Error {}

/** Reads a form. Rejects with a FormError. */
export async function readForm(body: Buffer, contentType = ''): Promise<Form> {
  const parts: { name: string; fileName: string | null; type: string | null; data: Buffer }[] = []
  const parser = parserFor(contentType)
  parser.on('field', (name, value) =>
    parts.push({ name, fileName: null, type: null, data: Buffer.from(value) }),
  )
  const files: Promise<void>[] = []
  parser.on('file', (name, stream, { filename, mimeType }) => {
    const part = { name, fileName: filename ?? '', type: mimeType, data: Buffer.alloc(0) }
    parts.push(part)
    const keep = async () => {
      part.data = Buffer.concat(await stream.toArray())
    }
    files.push(keep())
  })
  const tooMany = Promise.withResolvers<never>()
  parser.on('partsLimit', () => tooMany.reject(new Error(`it has more than ${MAX_PARTS} parts`)))
  parser.end(body)
  try {
    await Promise.race([finished(parser), tooMany.promise])
    await Promise.all(files)
  } catch (error) {
    throw new FormError(`The form cannot be read: ${(error as Error).message}.`)
  }
  // A part without a name is invalid, whatever its type.
  if (parts.some(({ name }) => !name)) throw new FormError('A part of the form has no name.')
  return new Form(parts)
}

function parserFor(contentType: string): busboy.Busboy {
  if (!/^multipart\/form-data\b/i.test(contentType))
    throw new FormError(`Not multipart/form-data: '${contentType}'.`)
  try {
    const limits = { parts: MAX_PARTS, fieldSize: Number.POSITIVE_INFINITY }
    return busboy({ headers: { 'content-type': contentType }, defParamCharset: 'utf8', limits })
  } catch (error) {
    throw new FormError(`Not multipart/form-data: ${(error as Error).message}.`)
  }
}

/** @throws {SimulatedFailure} 400 */
export function readAs<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  below = '',
): z.infer<Schema> {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  const [issue] = read.error.issues
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys[0] : undefined
  const field = [...(below === '' ? [] : [below]), ...(issue?.path ?? []), ...(unknown ? [unknown] : [])]
  const param = field.map(String).join('.')
  const message = unknown === undefined ? `${param}: ${issue?.message}.` : `Unknown parameter: '${param}'.`
  throw new SimulatedFailure(400, 'invalid_request', message, { param })
}
