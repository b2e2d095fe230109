/** The longest turns of the event loop of a gateway, as `event-loop-watch.ts` measures them inside the process. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

export const DELAY_FILE_VARIABLE = 'TOLLGATE_BENCH_DELAY_FILE'
export interface Turns {
  /** By how much the loop was late. */
  readonly delayMs: number
  /** CPU time of the loop in one turn, or in two that follow one another. */
  readonly cpuMs: number
}

const LOOK_EVERY_MS = 10
/** Before there were limits one request held the loop for half a minute. */
const LIMIT_MS = 300_000

/** What the environment of the service needs, so that {@link longestTurns} works. */
export const watchVariables = (file: string): Record<string, string> => ({
  [DELAY_FILE_VARIABLE]: file,
  NODE_OPTIONS: `--import ${new URL('event-loop-watch.ts', import.meta.url).href}`,
})

/** Returns the longest since it was last asked for. Rejects when the process does not answer. */
export async function longestTurns(pid: number, file: string): Promise<Turns> {
  rmSync(file, { force: true })
  process.kill(pid, 'SIGUSR2')
  for (const deadline = Date.now() + LIMIT_MS; !existsSync(file); await delay(LOOK_EVERY_MS))
    if (Date.now() > deadline) throw new Error(`gateway ${pid} did not write the turns of its event loop`)
  return JSON.parse(readFileSync(file, 'utf8')) as Turns
}
