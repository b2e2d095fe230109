/**
 * Gives memory back once the process rests. V8 collects garbage when memory is allocated: what a start or a busy hour
 * leaves behind would stay. Not for gateways: a collection stops the process for a tenth of a second, and a call would wait.
 */
const LOOK_INTERVAL_MS = 10_000
/** A process rests while it takes less than this share of a core. */
const REST_SHARE = 0.02
/** Less is not worth a collection. */
const WORTH_BYTES = 8 * 1024 * 1024
const US_PER_MS = 1000

/** Looks from time to time, as long as the process lives. Does nothing without Node's `--expose-gc`. */
export function collectAtRest(): void {
  const collect = globalThis.gc
  if (collect === undefined) return
  let used = process.cpuUsage()
  let keptBytes = 0
  const look = async () => {
    const { user, system } = process.cpuUsage(used)
    used = process.cpuUsage()
    const isResting = (user + system) / US_PER_MS < LOOK_INTERVAL_MS * REST_SHARE
    if (!isResting || process.memoryUsage.rss() < keptBytes + WORTH_BYTES) return
    // The last resort also returns free pages to the system.
    await collect({ type: 'major', execution: 'async', flavor: 'last-resort' })
    keptBytes = process.memoryUsage.rss()
    used = process.cpuUsage()
  }
  setInterval(() => void look(), LOOK_INTERVAL_MS).unref()
}
