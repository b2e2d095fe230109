/** Forms with files: multipart/form-data (RFC 7578) out of a body that is there whole. */

import { SimulatedFailure } from '../dialect.ts'

const BREAK = '\r\n'
const HEAD_END = '\r\n\r\n'
const MAX_PARTS = 100

export type FormPart = {
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

/** @throws {SimulatedFailure} 400 where it is no form, or a torn one. */
export function readForm(body: Buffer, contentType: string | undefined): Form {
  const boundary = boundaryOf(contentType)
  const delimiter = Buffer.from(`${BREAK}--${boundary}`)
  // The first delimiter has no line before it that would end with a break.
  const whole = Buffer.concat([Buffer.from(BREAK), body])
  const parts: FormPart[] = []
  let at = whole.indexOf(delimiter)
  while (at >= 0) {
    const from = at + delimiter.length
    if (whole.toString('latin1', from, from + 2) === '--') return new Form(parts)
    const next = whole.indexOf(delimiter, from)
    if (next < 0 || parts.length === MAX_PARTS) break
    parts.push(readPart(whole.subarray(from + BREAK.length, next)))
    at = next
  }
  throw new SimulatedFailure(400, 'invalid_request', 'The form has no end.')
}

function boundaryOf(contentType = ''): string {
  const found = /^multipart\/form-data\s*;.*?boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(contentType)
  const boundary = found?.[1] ?? found?.[2]
  if (boundary !== undefined) return boundary
  throw new SimulatedFailure(400, 'invalid_request', `Not multipart/form-data: '${contentType}'.`)
}

function readPart(part: Buffer): FormPart {
  const headBytes = part.indexOf(HEAD_END)
  const head = part.toString('utf8', 0, Math.max(headBytes, 0))
  const name = /^content-disposition:\s*form-data\s*;.*?\bname="([^"]*)"/im.exec(head)?.[1]
  if (name === undefined)
    throw new SimulatedFailure(400, 'invalid_request', 'A part of the form has no name.')
  return {
    name,
    fileName: /\bfilename="([^"]*)"/i.exec(head)?.[1] ?? null,
    type: /^content-type:\s*(\S+)/im.exec(head)?.[1] ?? null,
    data: part.subarray(headBytes + HEAD_END.length),
  }
}
