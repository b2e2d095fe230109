/** Measures by the CPU time of this process how the work for a text grows with its length. */

/** Less is noise of the machine: growth below it does not count. */
const FLOOR_MS = 12
const REPETITIONS = 3
/** From one size to the next one, four times as large. A reader that compares everything with everything takes 16. */
export const STEP = 4
const MAX_GROWTH = 6

type Work = (bytes: number) => unknown

const MICROSECONDS_PER_MS = 1000

async function cpuMs(work: Work, bytes: number): Promise<number> {
  const before = process.cpuUsage()
  await work(bytes)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / MICROSECONDS_PER_MS
}

/** Returns the smallest CPU time of three, in milliseconds; of fewer where one is below what counts. */
async function leastMs(work: Work, bytes: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let time = 0; time < REPETITIONS && least > FLOOR_MS; time++)
    least = Math.min(least, await cpuMs(work, bytes))
  return least
}

/**
 * Returns how the work grows too fast; null where it does not. It is done for `bytes`, 4 times and 16 times as many.
 * @param work is given the number of bytes
 */
export async function growthFault(work: Work, bytes: number): Promise<string | null> {
  let before = Math.max(FLOOR_MS, await leastMs(work, bytes))
  for (const factor of [STEP, STEP * STEP]) {
    const now = await leastMs(work, bytes * factor)
    if (now > MAX_GROWTH * before)
      return `${bytes * factor} bytes take ${now.toFixed(0)} ms, a ${STEP}th of them ${before.toFixed(0)} ms or less`
    before = Math.max(FLOOR_MS, now)
  }
  return null
}
