/** The thread that reads long requests. */
import { Buffer } from 'node:buffer'
import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { basename } from 'node:path'
import { parentPort } from 'node:worker_threads'
import { Failure, type FailureCode } from '../../../schemas/failure.ts'
import type { ChatCall } from '../../protocols/dialect.ts'
import { READERS, type ReaderName } from '../../protocols/registry.ts'

export interface ToReader {
  readonly reader: ReaderName
  readonly path: string
  readonly query: string
  readonly body: Uint8Array
}

export type FromReader =
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

function read({ reader, path, query, body }: ToReader): FromReader {
  try {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    const call = READERS[reader].read({ path, query, body: bytes })
    return { call: { ...call, source: { ...(call.source as object), body: null } } }
  } catch (error) {
    if (!(error instanceof Failure)) {
      const text = 'The gateway failed to handle the call.'
      const internal = String((error as Error).stack)
      return { refusal: { code: 'internal_error', text, internal, status: 500, headers: [] } }
    }
    const { code, message, status, headers, internal } = error
    return {
      refusal: { code, text: message, status, headers, ...(internal !== undefined && { internal }) },
    }
  }
}

/** Priority of the thread, as on Linux: the event loop runs first on a core that both want. */
const PRIORITY = 10
try {
  setPriority(Number(basename(readlinkSync('/proc/thread-self'))), PRIORITY)
} catch {
  // Elsewhere both have the same.
}

parentPort!.on('message', (message: ToReader) => parentPort!.postMessage(read(message)))
