/** The thread that reads long requests. */
import { Buffer } from 'node:buffer'
import { parentPort } from 'node:worker_threads'
import { Failure, type FailureCode } from '../../../schemas/failure.ts'
import type { ChatCall } from '../../protocols/dialect.ts'
import { READERS, type ReaderName } from '../../protocols/registry.ts'

export interface ToReader {
  readonly serial: number
  readonly reader: ReaderName
  readonly path: string
  readonly query: string
  readonly body: Uint8Array
}

export type FromReader = { readonly serial: number } & (
  | {
      /** Without the body in its source. */
      readonly call: ChatCall
    }
  | {
      readonly refusal: Pick<Failure, 'status' | 'headers'> & {
        readonly code: FailureCode
        readonly text: string
        readonly internal?: string
      }
    }
)

function read({ serial, reader, path, query, body }: ToReader): FromReader {
  try {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    const call = READERS[reader].read({ path, query, body: bytes })
    return { serial, call: { ...call, source: { ...(call.source as object), body: null } } }
  } catch (error) {
    if (!(error instanceof Failure)) {
      const text = 'The gateway failed to handle the call.'
      const internal = String((error as Error).stack)
      return { serial, refusal: { code: 'internal_error', text, internal, status: 500, headers: [] } }
    }
    const { code, message, status, headers, internal } = error
    return {
      serial,
      refusal: { code, text: message, status, headers, ...(internal !== undefined && { internal }) },
    }
  }
}

parentPort!.on('message', (message: ToReader) => parentPort!.postMessage(read(message)))
