import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readlinkSync } from 'node:fs'
import { basename } from 'node:path'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

/**
 * The program of `core-latency.ts`: its main thread writes a word and waits until its other thread, on the core of its
 * first argument, has written it too. Answers each message with nanoseconds, or null.
 */

/** Words of the shared memory, each in a separate cache line. */
const WAKE = 0
const CALL = 64
const ECHO = 128
const WORDS = 192
const BATCHES = 40
const TRIPS_A_BATCH = 100
/** About ten milliseconds: the other thread may have to wait for its core. */
const SPINS_MAX = 5_000_000

const comes = (words: Int32Array, index: number, value: number): boolean => {
  for (let spins = 0; spins < SPINS_MAX; spins++) if (Atomics.load(words, index) === value) return true
  return false
}

/** Returns the mean of the quickest batch, because interruptions only add. Returns null when the other thread is late. */
const roundTripNs = (words: Int32Array): number | null => {
  for (const index of [CALL, ECHO]) Atomics.store(words, index, 0)
  Atomics.add(words, WAKE, 1)
  Atomics.notify(words, WAKE)
  const batches: number[] = []
  for (let trip = 0; batches.length < BATCHES; ) {
    const startedAt = process.hrtime.bigint()
    for (let left = TRIPS_A_BATCH; left > 0; left--) {
      Atomics.store(words, CALL, ++trip)
      if (!comes(words, ECHO, trip)) return null
    }
    batches.push(Number(process.hrtime.bigint() - startedAt) / TRIPS_A_BATCH)
  }
  return Math.min(...batches)
}

const echo = (words: Int32Array): never => {
  for (let woken = 0; ; ) {
    Atomics.wait(words, WAKE, woken)
    woken = Atomics.load(words, WAKE)
    for (let trip = 1; trip <= BATCHES * TRIPS_A_BATCH && comes(words, CALL, trip); trip++)
      Atomics.store(words, ECHO, trip)
  }
}

if (isMainThread) {
  const words = new Int32Array(new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT))
  const worker = new Worker(new URL(import.meta.url), { workerData: words })
  const [task] = await once(worker, 'message')
  execFileSync('taskset', ['-c', '-p', process.argv[2]!, task], { stdio: 'ignore' })
  process.on('message', () => process.send!(roundTripNs(words)))
  process.once('disconnect', () => process.exit(0))
  process.send!('ready')
} else {
  parentPort!.postMessage(basename(readlinkSync('/proc/thread-self')))
  echo(workerData as Int32Array)
}
