/**
 * Reads long requests in a thread: to check a body of megabytes takes longer than other calls may wait. What crosses
 * the border of the thread is the body, once, and what was read of it.
 */
import { Worker } from 'node:worker_threads'
import { Failure } from '../../../schemas/failure.ts'
import type { ChatCall, ClientRequest } from '../../protocols/dialect.ts'
import type { ReaderName } from '../../protocols/registry.ts'
import type { FromReader, ToReader } from './reader-thread.ts'

/** Requests that wait for the thread. Each holds its body. */
const MAX_WAITING = 64

interface Waiting {
  readonly request: ClientRequest
  readonly resolve: (call: ChatCall) => void
  readonly reject: (error: Error) => void
}

export interface LongRequests {
  /** Rejects with the Failure that the reader throws, or with `service_unavailable`. */
  read(reader: ReaderName, request: ClientRequest): Promise<ChatCall>
  close(): void
}

const busy = (): Failure =>
  new Failure('service_unavailable', 'The service is busy with other long requests. Try again in a moment.', {
    headers: [['retry-after', '1']],
  })

/** The thread begins with the first long request, and again after it has ended by an error. */
export function longRequests(log: { error(details: object, message: string): void }): LongRequests {
  const waiting = new Map<number, Waiting>()
  let thread: Worker | null = null
  let serial = 0

  const lost = () => {
    thread = null
    for (const { reject } of waiting.values()) reject(busy())
    waiting.clear()
  }
  const begin = (): Worker => {
    const worker = new Worker(new URL('reader-thread.ts', import.meta.url))
    worker.unref()
    worker.on('error', (error) =>
      log.error({ err: error, requests: waiting.size }, 'The thread for long requests ended: they get 503'),
    )
    worker.on('exit', () => {
      if (thread === worker) lost()
    })
    worker.on('message', (message: FromReader) => {
      const asked = waiting.get(message.serial)
      if (asked === undefined) return
      waiting.delete(message.serial)
      if ('refusal' in message) {
        const { code, text, ...more } = message.refusal
        asked.reject(new Failure(code, text, more))
        return
      }
      const { call } = message
      const source = { ...(call.source as object), body: asked.request.body }
      asked.resolve({ ...call, source })
    })
    return worker
  }
  return {
    read: (reader, request) =>
      new Promise((resolve, reject) => {
        if (waiting.size >= MAX_WAITING) return reject(busy())
        thread ??= begin()
        waiting.set(++serial, { request, resolve, reject })
        const { path, query, body } = request
        thread.postMessage({ serial, reader, path, query, body } satisfies ToReader)
      }),
    close() {
      void thread?.terminate()
      lost()
    },
  }
}
