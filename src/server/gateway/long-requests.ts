/**
 * Reads long requests in a thread: checking a body of megabytes takes longer than other calls may wait. The body is
 * copied into the thread, and the result is copied back. Accounts take turns: one with many long requests delays only
 * its own.
 */
import { Worker } from 'node:worker_threads'
import { Failure } from '../../../schemas/failure.ts'
import type { ChatCall, ClientRequest } from '../../protocols/dialect.ts'
import type { ReaderName } from '../../protocols/registry.ts'
import type { FromReader, ToReader } from './reader-thread.ts'

/** Requests that wait for the thread, of all accounts and of one. Each holds its body. */
const MAX_WAITING = 64
const MAX_WAITING_OF_ACCOUNT = 16

interface Waiting {
  readonly reader: ReaderName
  readonly request: ClientRequest
  readonly resolve: (call: ChatCall) => void
  readonly reject: (error: Error) => void
}

export interface LongRequests {
  /** Rejects with the Failure that the reader throws, or with `service_unavailable`. */
  read(reader: ReaderName, request: ClientRequest, accountId: string): Promise<ChatCall>
  close(): void
}

const busy = (): Failure =>
  new Failure('service_unavailable', 'The service is busy with other long requests. Try again in a moment.', {
    headers: [['retry-after', '1']],
  })

/** Starts the thread with the first long request, and again after an error has ended it. */
export function longRequests(log: { error(details: object, message: string): void }): LongRequests {
  /** By account, in the order of their turns. */
  const queues = new Map<string, Waiting[]>()
  let waitingCount = 0
  let reading: Waiting | null = null
  let thread: Worker | null = null

  const next = (): Waiting | null => {
    const [first] = queues
    if (first === undefined) return null
    const [accountId, queue] = first
    const waiting = queue.shift()!
    waitingCount--
    queues.delete(accountId)
    if (queue.length > 0) queues.set(accountId, queue)
    return waiting
  }
  const readNext = () => {
    reading = next()
    if (reading === null) return
    thread ??= begin()
    const { reader, request } = reading
    const { path, query, body } = request
    thread.postMessage({ reader, path, query, body } satisfies ToReader)
  }
  const begin = (): Worker => {
    const worker = new Worker(new URL('reader-thread.ts', import.meta.url))
    worker.unref()
    worker.on('error', (error) =>
      log.error({ err: error }, 'The thread for long requests ended: the request that it read gets 503'),
    )
    worker.on('exit', () => {
      if (thread !== worker) return
      thread = null
      reading?.reject(busy())
      readNext()
    })
    worker.on('message', (message: FromReader) => {
      if (thread !== worker || reading === null) return
      const { request, resolve, reject } = reading
      readNext()
      if ('refusal' in message) {
        const { code, text, ...more } = message.refusal
        return reject(new Failure(code, text, more))
      }
      const source = { ...(message.call.source as object), body: request.body }
      resolve({ ...message.call, source })
    })
    return worker
  }
  return {
    read: (reader, request, accountId) =>
      new Promise((resolve, reject) => {
        const queue = queues.get(accountId) ?? []
        if (waitingCount >= MAX_WAITING || queue.length >= MAX_WAITING_OF_ACCOUNT) return reject(busy())
        queue.push({ reader, request, resolve, reject })
        queues.set(accountId, queue)
        waitingCount++
        if (reading === null) readNext()
      }),
    close() {
      const left = [reading, ...[...queues.values()].flat()]
      queues.clear()
      waitingCount = 0
      reading = null
      void thread?.terminate()
      thread = null
      for (const waiting of left) waiting?.reject(busy())
    },
  }
}
