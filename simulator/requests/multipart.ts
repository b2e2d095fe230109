/** Forms with files: multipart/form-data (RFC 7578) out of a body that is there whole. */

import { finished } from 'node:stream/promises'
import busboy from 'busboy'

const MAX_PARTS = 100

type FormPart = {
  readonly name: string
  /** Null where the part is no file. */
  readonly fileName: string | null
  readonly type: string | null
  readonly data: Buffer
}

export class Form {
  readonly #parts: readonly FormPart[]

  constructor(parts: readonly FormPart[]) {
    this.#parts = parts
  }

  /** The fields that are no files; where one comes twice, the last. */
  fields(): Record<string, string> {
    const fields = this.#parts.filter(({ fileName }) => fileName === null)
    return Object.fromEntries(fields.map(({ name, data }) => [name, data.toString('utf8')]))
  }

  /** The files under any of these names, in their order. */
  files(...names: readonly string[]): FormPart[] {
    return this.#parts.filter(({ name, fileName }) => fileName !== null && names.includes(name))
  }
}

/** What is no form, or ends early. */
export class FormError extends Error {}

/** Rejects with a FormError. */
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
  // A part without a name comes with none, whatever its type says.
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
