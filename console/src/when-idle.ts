/** A page that has just begun is still loading, although nothing runs. */
const SETTLE_MS = 1_500
const MAX_WAIT_MS = 2_000

/** Runs once the page had time to load and the browser has nothing to do. Returns what cancels it. */
export function whenIdle(run: () => void): () => void {
  // Safari has no idle callbacks.
  const timer = setTimeout(
    () => ('requestIdleCallback' in globalThis ? requestIdleCallback(run, { timeout: MAX_WAIT_MS }) : run()),
    SETTLE_MS,
  )
  return () => clearTimeout(timer)
}
