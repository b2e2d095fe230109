/** The thread that reads pages. */
import { Buffer } from 'node:buffer'
import { parentPort } from 'node:worker_threads'
import { type ReadPage, readPage } from '../../markdown/page.ts'
import { type FileProblem, FileProblemError } from '../../markdown/problem.ts'

export interface ToPageThread {
  readonly path: string
  readonly bytes: Uint8Array
}

export type FromPageThread = { readonly page: ReadPage } | { readonly problems: readonly FileProblem[] }

function read({ path, bytes }: ToPageThread): FromPageThread {
  try {
    return { page: readPage(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), path) }
  } catch (error) {
    if (error instanceof FileProblemError) return { problems: error.problems }
    throw error
  }
}

parentPort!.on('message', (asked: ToPageThread) => parentPort!.postMessage(read(asked)))
