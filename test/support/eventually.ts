/** Waits with a bound: a wait that ends without what it waited for says what that was. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Far above what anything takes, on a slow machine under load: it ends only what would never end. */
export const BOUND_MS = 300_000
/** What is asked is often a program's work, and costs more than the wait: the gaps grow. */
const FIRST_POLL_MS = 25
const LONGEST_POLL_MS = 250
const POLL_GROWTH = 1.5
const SHORT_POLL_MS = 5

/** Polls until the check gives something; the error names what was waited for. */
export async function eventually<T>(
  what: string,
  check: () => Promise<T | undefined> | T | undefined,
  boundMs = BOUND_MS,
  firstPollMs = FIRST_POLL_MS,
): Promise<T> {
  const deadline = Date.now() + boundMs
  for (let gapMs = firstPollMs; ; gapMs = Math.min(gapMs * POLL_GROWTH, LONGEST_POLL_MS)) {
    const found = await check()
    if (found !== undefined) return found
    if (Date.now() > deadline) throw new Error(`not within ${boundMs} ms: ${what}`)
    await sleep(gapMs)
  }
}

/** Waits until it is so. */
export const until = async (
  what: string,
  isSo: () => boolean | Promise<boolean>,
  boundMs = BOUND_MS,
): Promise<void> => {
  await eventually(what, async () => (await isSo()) || undefined, boundMs, SHORT_POLL_MS)
}
