/**
 * Uncaught errors and unhandled rejections. What the process knows may be wrong after one: a process that holds money is
 * replaced. By default Node.js would end it at once, and with it everybody's streams.
 */
import type { Log } from '../telemetry/log.ts'

/** Calls `onError` for each. Node.js reports an unhandled rejection here too. */
function watch(log: Log, consequence: string, onError: () => void = () => {}): void {
  process.on('uncaughtException', (error: Error, origin) => {
    log.fatal({ err: error, origin }, `Uncaught error; ${consequence}`)
    onError()
  })
}

/** For the supervisor, which holds no money and restarts the others: it goes on. */
export const logUncaughtExceptions = (log: Log): void => watch(log, 'the process goes on')

/** For a process with open streams. `drain` ends it once they have ended; it is called for each further error as well. */
export const drainOnUncaughtException = (log: Log, drain: () => void): void =>
  watch(log, 'the process drains and is replaced', drain)

/** For a process that loses nothing by ending: its work is done again by the one that is started in its place. */
export const exitOnUncaughtException = (log: Log & { flush(): void }): void =>
  watch(log, 'the process ends and is restarted', () => {
    log.flush()
    process.exit(1)
  })
