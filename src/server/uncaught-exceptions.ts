/**
 * Uncaught exceptions and unhandled rejections. The state of the process may be wrong after one: a process that holds
 * money is replaced. By default Node.js would end it at once, and with it all open streams.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Log } from '../telemetry/log.ts'

const REPORT_BOUND_MS = 1_000

/** Calls `onError` for each. Node.js reports an unhandled rejection here too. */
function watch(log: Log, consequence: string, onError: () => void = () => {}): void {
  process.on('uncaughtException', (error: Error, origin) => {
    log.fatal({ err: error, origin }, `Uncaught error; ${consequence}`)
    onError()
  })
}

/** Logs only: for the supervisor, which holds no money and restarts the others. */
export const logUncaughtExceptions = (log: Log): void => watch(log, 'the process goes on')

/**
 * Drains a process with open streams. `drain` ends it once they have ended; it is called for each further error as
 * well.
 */
export const drainOnUncaughtException = (log: Log, drain: () => void): void =>
  watch(log, 'the process drains and is replaced', drain)

/**
 * Exits: for a process that loses nothing by ending, because the one started in its place does its work again. What it
 * counted `report` sends before.
 */
export const exitOnUncaughtException = (log: Log & { flush(): void }, report: () => Promise<unknown>): void =>
  watch(log, 'the process ends and is restarted', () => {
    log.flush()
    void Promise.race([report().catch(() => undefined), pause(REPORT_BOUND_MS)]).then(() => process.exit(1))
  })
