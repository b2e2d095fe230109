/** A thread that works on long requests. */
import { Buffer } from 'node:buffer'
import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { basename } from 'node:path'
import { parentPort, type TransferListItem } from 'node:worker_threads'
import { Failure, type FailureCode } from '../../../schemas/failure.ts'
import {
  BODY_WORK,
  type BodyInputs,
  type BodyResults,
  type BodyWorkName,
  withBody,
} from '../../protocols/body-work.ts'

export type ToReader = {
  [Name in BodyWorkName]: {
    readonly name: Name
    /** A call in it is without the body in its source, as is one in the result. */
    readonly input: BodyInputs[Name]
    readonly body: Uint8Array
  }
}[BodyWorkName]

export type FromReader =
  | { readonly result: BodyResults[BodyWorkName] }
  | {
      readonly refusal: Pick<Failure, 'status' | 'headers'> & {
        readonly details?: Failure['details']
        readonly code: FailureCode
        readonly text: string
        readonly internal?: string
      }
    }

const toBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

function runWork({ name, input, body: bytes }: ToReader): BodyResults[BodyWorkName] {
  const body = toBuffer(bytes)
  const whole = 'call' in input ? { ...input, call: withBody(input.call, body) } : input
  const work = BODY_WORK[name] as (input: unknown, body: Buffer) => BodyResults[BodyWorkName]
  const result = work(whole, body)
  return name === 'read' ? withBody(result as BodyResults['read'], null) : result
}

function answer(message: ToReader): FromReader {
  try {
    return { result: runWork(message) }
  } catch (error) {
    if (!(error instanceof Failure)) {
      const text = 'The gateway failed to handle the call.'
      const internal = String((error as Error).stack)
      return { refusal: { code: 'internal_error', text, internal, status: 500, headers: [] } }
    }
    const { code, message, status, headers, details, internal } = error
    return {
      refusal: { code, text: message, status, headers, details, ...(internal !== undefined && { internal }) },
    }
  }
}

/** Returns the memory of a body that was written, which need not be copied back. */
function listOwned(message: FromReader): readonly TransferListItem[] {
  if (!('result' in message) || !('body' in Object(message.result))) return []
  const { buffer, byteLength } = (message.result as { body: Buffer }).body
  return buffer.byteLength === byteLength ? [buffer as ArrayBuffer] : []
}

/** Priority of the thread, as on Linux: the event loop runs first on a core that both want. */
const PRIORITY = 10
try {
  setPriority(Number(basename(readlinkSync('/proc/thread-self'))), PRIORITY)
} catch {
  // Elsewhere both have the same.
}

parentPort!.on('message', (message: ToReader) => {
  const answered = answer(message)
  parentPort!.postMessage(answered, listOwned(answered))
})
