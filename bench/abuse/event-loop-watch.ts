/**
 * Loaded into each process of the service under attack. In a gateway it measures the turns of the event loop: by how much
 * they are late, and how much of that is CPU time of the loop, which does not depend on what else the machine does.
 * SIGUSR2 makes it write the longest since the last signal into the file that the variable names.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { DELAY_FILE_VARIABLE, type Turns } from './event-loop-delay.ts'

const EVERY_MS = 5
const NS_PER_MS = 1e6

/** Nanoseconds that the calling thread was on a CPU, in milliseconds. */
const cpuMs = (): number =>
  Number.parseInt(readFileSync('/proc/thread-self/schedstat', 'latin1'), 10) / NS_PER_MS

const path = process.env[DELAY_FILE_VARIABLE]
if (path !== undefined && process.argv.some((word) => word.endsWith('--role=gateway'))) {
  let longest: Turns = { delayMs: 0, cpuMs: 0 }
  let before = { at: performance.now(), cpu: cpuMs() }
  setInterval(() => {
    const now = { at: performance.now(), cpu: cpuMs() }
    longest = {
      delayMs: Math.max(longest.delayMs, now.at - before.at - EVERY_MS),
      cpuMs: Math.max(longest.cpuMs, now.cpu - before.cpu),
    }
    before = now
  }, EVERY_MS).unref()
  process.on('SIGUSR2', () => {
    writeFileSync(`${path}.part`, JSON.stringify(longest))
    renameSync(`${path}.part`, path)
    longest = { delayMs: 0, cpuMs: 0 }
  })
}
