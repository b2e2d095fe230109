/**
 * Works on long requests in threads: to read, to check and to translate one takes longer than other calls may wait. The
 * body is copied into a thread, and the result comes back. Accounts take turns: one with many long requests delays
 * only its own.
 */
import { Buffer } from 'node:buffer'
import { Worker } from 'node:worker_threads'
import { Failure } from '../../../schemas/failure.ts'
import { type BodyInputs, type WorkOnLongBody, withBody } from '../../protocols/body-work.ts'
import type { ChatCall, EncodedRequest } from '../../protocols/dialect.ts'
import type { FromReader, ToReader } from './reader-thread.ts'

/** The second begins when there is work for it: the body of one call may take a while. */
const MAX_THREADS = 2
/** Pieces of work that wait for a thread, of all accounts and of one. Each holds its body. */
const MAX_WAITING = 512
const MAX_WAITING_OF_ACCOUNT = 64

interface Waiting {
  readonly message: ToReader
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

interface LongRequests {
  readonly work: WorkOnLongBody
  close(): void
}

const busy = (): Failure =>
  new Failure('service_unavailable', 'The service is busy with other long requests. Try again in a moment.', {
    headers: [['retry-after', '1']],
  })

/** Leaves the body out of a call: the thread has it already. */
const removeBody = (input: BodyInputs[keyof BodyInputs]) =>
  'call' in input ? { ...input, call: withBody(input.call, null) } : input

const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array

/** Returns a result as the work returned it: the thread sends no `Buffer`, and no body of a call. */
function revive({ name, body }: ToReader, result: unknown): unknown {
  if (name === 'read') return withBody(result as ChatCall, body as Buffer)
  const bytes = isBytes(result) ? result : (result as Partial<EncodedRequest> | null)?.body
  if (!isBytes(bytes)) return result
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return isBytes(result) ? buffer : { ...(result as object), body: buffer }
}

/** Starts a thread with the first long request, and again after an error has ended it. */
export function openLongRequests(
  log: { error(details: object, message: string): void },
  maxThreads = MAX_THREADS,
): LongRequests {
  /** By account, in the order of their turns. */
  const queues = new Map<string, Waiting[]>()
  let waitingCount = 0
  /** Threads with what they work on; null: nothing. */
  const threads = new Map<Worker, Waiting | null>()

  const takeNext = (): Waiting | null => {
    const [first] = queues
    if (first === undefined) return null
    const [accountId, queue] = first
    const waiting = queue.shift()!
    waitingCount--
    queues.delete(accountId)
    if (queue.length > 0) queues.set(accountId, queue)
    return waiting
  }
  const workOn = (thread: Worker) => {
    const waiting = takeNext()
    threads.set(thread, waiting)
    if (waiting !== null) thread.postMessage(waiting.message)
  }
  const begin = (): Worker => {
    const thread = new Worker(new URL('reader-thread.ts', import.meta.url))
    thread.unref()
    thread.on('error', (error) =>
      log.error({ err: error }, 'A thread for long requests ended: the request that it worked on gets 503'),
    )
    thread.on('exit', () => {
      const left = threads.get(thread)
      if (!threads.delete(thread)) return
      left?.reject(busy())
      wake()
    })
    thread.on('message', (message: FromReader) => {
      const done = threads.get(thread)
      if (done == null) return
      workOn(thread)
      if ('result' in message) return done.resolve(revive(done.message, message.result))
      const { code, text, ...more } = message.refusal
      done.reject(new Failure(code, text, more))
    })
    return thread
  }
  /** Gives waiting work to a thread that is free. */
  const wake = () => {
    if (waitingCount === 0) return
    const free = [...threads].find(([, waiting]) => waiting === null)?.[0]
    if (free !== undefined) workOn(free)
    else if (threads.size < maxThreads) workOn(begin())
  }
  return {
    work: (accountId, name, input, body) =>
      new Promise<never>((resolve, reject) => {
        const queue = queues.get(accountId) ?? []
        if (waitingCount >= MAX_WAITING || queue.length >= MAX_WAITING_OF_ACCOUNT) return reject(busy())
        const message = { name, input: removeBody(input), body } as ToReader
        queue.push({ message, resolve: resolve as (result: unknown) => void, reject })
        queues.set(accountId, queue)
        waitingCount++
        wake()
      }),
    close() {
      const left = [...threads.values(), ...[...queues.values()].flat()]
      const running = [...threads.keys()]
      threads.clear()
      queues.clear()
      waitingCount = 0
      for (const thread of running) void thread.terminate()
      for (const waiting of left) waiting?.reject(busy())
    },
  }
}
