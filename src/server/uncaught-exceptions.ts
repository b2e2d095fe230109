/**
 * Uncaught errors and unhandled rejections. Each belongs to one callback, such as of a connection
 * that a client package lost, and by default would end the process and with it everybody's streams.
 */
import type { Log } from '../telemetry/log.ts'

/** This many within the window are no accident any more: something is broken, and only a restart mends it. */
const REPEATED_COUNT = 10
const REPEATED_WINDOW_MS = 10_000

/**
 * Logs each.
 *
 * @param onRepeated called once, when errors come so often that going on makes no sense
 */
export function logUncaughtExceptions(log: Log, onRepeated: () => void = () => {}): void {
  const times: number[] = []
  let isTold = false
  // Node brings an unheard rejection here too.
  process.on('uncaughtException', (error: Error, origin) => {
    log.fatal({ err: error, origin }, 'Uncaught error; the process goes on')
    const now = performance.now()
    times.push(now)
    if (times.length < REPEATED_COUNT) return
    const first = times.shift() ?? now
    if (isTold || now - first > REPEATED_WINDOW_MS) return
    isTold = true
    log.fatal({}, 'Uncaught errors keep coming; draining')
    onRepeated()
  })
}

/** For a process that loses nothing by ending: its work is done again by the one that is started in its place. */
export function exitOnUncaughtException(log: Log & { flush(): void }): void {
  process.on('uncaughtException', (error: Error, origin) => {
    log.fatal({ err: error, origin }, 'Uncaught error; the process ends and is restarted')
    log.flush()
    process.exit(1)
  })
}
