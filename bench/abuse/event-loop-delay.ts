/** By how much the event loop of a gateway was late, as `event-loop-watch.ts` measures it inside the process. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

export const DELAY_FILE_VARIABLE = 'TOLLGATE_BENCH_DELAY_FILE'
const LOOK_EVERY_MS = 10
/** Before there were limits one request held the loop for half a minute. */
const LIMIT_MS = 300_000

/** What the environment of the service needs, so that {@link longestDelayMs} works. */
export const watchVariables = (file: string): Record<string, string> => ({
  [DELAY_FILE_VARIABLE]: file,
  NODE_OPTIONS: `--import ${new URL('event-loop-watch.ts', import.meta.url).href}`,
})

/** The longest delay, in milliseconds, since it was last asked for. Rejects when the process does not answer. */
export async function longestDelayMs(pid: number, file: string): Promise<number> {
  rmSync(file, { force: true })
  process.kill(pid, 'SIGUSR2')
  for (const deadline = Date.now() + LIMIT_MS; !existsSync(file); await delay(LOOK_EVERY_MS))
    if (Date.now() > deadline) throw new Error(`gateway ${pid} did not write its event loop delay`)
  return Number(readFileSync(file, 'utf8'))
}
