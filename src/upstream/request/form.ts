/**
 * One request whose body is a form with files, each streamed from where it stands: of a file no more than a piece is in
 * memory. On a separate connection, by Node's client: such requests are few, and large.
 */
import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** An import from an ES module also loads Node's WebSocket: 7 MB of memory. */
const { request: requestHttp } = process.getBuiltinModule('node:http')

export type FormField =
  | { readonly name: string; readonly value: string }
  | {
      readonly name: string
      readonly fileName: string
      readonly mediaType: string
      /** The number of bytes that are sent. */
      readonly bytes: number
      readonly open: () => Promise<Readable>
    }

interface FormRequest {
  readonly url: string
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  readonly fields: readonly FormField[]
  readonly timeoutMs: number
  readonly maxAnswerBytes: number
  readonly signal?: AbortSignal
}

interface FormAnswer {
  readonly status: number
  readonly header: (name: string) => string | null
  readonly body: Buffer
}

export class FormFailure extends Error {
  /** The connection was open: any of the request may have gone out. */
  readonly sent: boolean
  readonly isTimeout: boolean

  constructor(message: string, sent: boolean, isTimeout: boolean) {
    super(message)
    this.name = 'FormFailure'
    this.sent = sent
    this.isTimeout = isTimeout
  }
}

/** Escapes quotes and line ends in a quoted name, as browsers do. */
const quote = (text: string): string =>
  text.replace(/["\r\n]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)

function printHead(boundary: string, field: FormField): Buffer {
  const disposition = `--${boundary}\r\ncontent-disposition: form-data; name="${quote(field.name)}"`
  return 'value' in field
    ? Buffer.from(`${disposition}\r\n\r\n${field.value}`)
    : Buffer.from(
        `${disposition}; filename="${quote(field.fileName)}"\r\ncontent-type: ${field.mediaType.replace(/[\r\n]/g, '')}\r\n\r\n`,
      )
}

const LINE_END = Buffer.from('\r\n')

/** The pieces of the body; ends with an error when a file does not have the announced length. */
async function* printPieces(boundary: string, fields: readonly FormField[]): AsyncGenerator<Buffer> {
  for (const field of fields) {
    yield printHead(boundary, field)
    if (!('value' in field)) {
      let left = field.bytes
      for await (const piece of (await field.open()) as AsyncIterable<Buffer>) {
        left -= piece.length
        if (left < 0) break
        yield piece
      }
      if (left !== 0) throw new Error(`The file ${field.fileName} does not have the announced length.`)
    }
    yield LINE_END
  }
  yield printEnd(boundary)
}

const printEnd = (boundary: string): Buffer => Buffer.from(`--${boundary}--\r\n`)

function computeLength(boundary: string, fields: readonly FormField[]): number {
  const measureField = (field: FormField) =>
    printHead(boundary, field).length + ('value' in field ? 0 : field.bytes) + LINE_END.length
  return fields.reduce((sum, field) => sum + measureField(field), printEnd(boundary).length)
}

/** @throws FormFailure when no whole answer came */
export async function sendForm({
  url,
  headers,
  fields,
  timeoutMs,
  maxAnswerBytes,
  signal,
}: FormRequest): Promise<FormAnswer> {
  const boundary = `tollgate-${randomUUID()}`
  const timeout = AbortSignal.timeout(timeoutMs)
  const ended = signal === undefined ? timeout : AbortSignal.any([timeout, signal])
  const isSecure = new URL(url).protocol === 'https:'
  const send = isSecure ? requestHttps : requestHttp
  const request = send(url, {
    method: 'POST',
    agent: false,
    signal: ended,
    headers: {
      ...Object.fromEntries(headers),
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': computeLength(boundary, fields),
    },
  })
  let hasAnswer = false
  // What waits to be written counts as written on a socket: only one that is open has sent any of it.
  let isOpen = false
  request.once('socket', (socket) =>
    socket.once(isSecure ? 'secureConnect' : 'connect', () => {
      isOpen = true
    }),
  )
  try {
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', (response) => {
        hasAnswer = true
        resolve(response)
      })
      // Also errors after the answer: an unhandled one would end the process.
      request.on('error', reject)
    })
    // An upstream may answer before it has read all: its answer counts, not the body that it did not take.
    const written = pipeline(Readable.from(printPieces(boundary, fields)), request).catch((error) => {
      if (!hasAnswer) throw error
    })
    const [response] = await Promise.all([answered, written])
    return await read(response, maxAnswerBytes)
  } catch (error) {
    throw new FormFailure((error as Error).message, isOpen, timeout.aborted)
  } finally {
    request.destroy()
  }
}

async function read(response: IncomingMessage, maxAnswerBytes: number): Promise<FormAnswer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxAnswerBytes) throw new Error(`The answer is larger than ${maxAnswerBytes} bytes`)
    chunks.push(chunk)
  }
  return {
    status: response.statusCode ?? 0,
    header: (name) => {
      const value = response.headers[name]
      return value === undefined ? null : String(value)
    },
    body: Buffer.concat(chunks),
  }
}
