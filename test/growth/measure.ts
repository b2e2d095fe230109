/** Measures by CPU time how the work for a text grows with its length. */

/** Less is noise of the machine: growth below it does not count. */
const FLOOR_MS = 12
const REPETITIONS = 3
/** From one size to the next one, four times as large. A reader that compares everything with everything takes 16. */
const STEP = 4
const MAX_GROWTH = 8

type Work = (bytes: number) => unknown

const MICROSECONDS_PER_MS = 1000

/** Returns the CPU time that this process has used, in milliseconds. */
function ownCpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / MICROSECONDS_PER_MS
}

/**
 * Returns how the work grows too fast; null where it does not. It is done for `bytes`, 4 times and 16 times as many, and
 * all again after a fault: a machine that slows down in the middle looks like growth, but not each time.
 * @param work is given the number of bytes
 * @param cpuMs returns the CPU time that the process which works has used
 */
export async function growthFault(work: Work, bytes: number, cpuMs = ownCpuMs): Promise<string | null> {
  let fault: string | null = null
  for (let time = 0; time < REPETITIONS; time++) {
    fault = await measureGrowth(work, bytes, cpuMs)
    if (fault === null) return null
  }
  return fault
}

async function measureGrowth(work: Work, bytes: number, cpuMs: () => number): Promise<string | null> {
  const measure = async (length: number): Promise<number> => {
    const before = cpuMs()
    await work(length)
    return cpuMs() - before
  }
  /** The smallest of them; of fewer where one is below what counts. */
  const least = async (length: number): Promise<number> => {
    let smallest = Number.POSITIVE_INFINITY
    for (let time = 0; time < REPETITIONS && smallest > FLOOR_MS; time++)
      smallest = Math.min(smallest, await measure(length))
    return smallest
  }
  // Most work ends here: where the longest text takes so little, the shorter ones do.
  if ((await measure(bytes * STEP * STEP)) <= MAX_GROWTH * FLOOR_MS) return null
  let before = Math.max(FLOOR_MS, await least(bytes))
  for (const factor of [STEP, STEP * STEP]) {
    const now = await least(bytes * factor)
    if (now > MAX_GROWTH * before)
      return `${bytes * factor} bytes take ${now.toFixed(0)} ms, a ${STEP}th of them ${before.toFixed(0)} ms or less`
    before = Math.max(FLOOR_MS, now)
  }
  return null
}
