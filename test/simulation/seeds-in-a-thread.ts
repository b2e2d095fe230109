/** Runs seeds of a simulation in threads, in parallel. A thread runs this same file. */
import { Worker, workerData } from 'node:worker_threads'

/** The most failing seeds that are reported. */
const MAX_FAILURES = 5
/** A run makes much that is short-lived. With room for it a fifth of the time is saved. */
const YOUNG_GENERATION_MB = 64

/** Both ends count. */
interface Seeds {
  readonly from: number
  readonly to: number
}

/**
 * Runs the module `url` in a thread, with its `workerData`, and returns what it posts. Tap follows every promise of a
 * test, which takes several times as long as a run; it follows none of another thread.
 */
export const inThread = <Result>(url: string, workerData: object): Promise<Result> =>
  new Promise((resolve, reject) => {
    const resourceLimits = { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB }
    const worker = new Worker(new URL(url), { workerData, resourceLimits })
    worker.once('message', resolve)
    worker.once('error', reject)
  })

/** Runs the seeds from 1 to `runs` in two threads of the module `url`, and returns what each came to. */
export const inTwoThreads = <Summary>(url: string, runs: number): Promise<[Summary, Summary]> =>
  Promise.all([
    inThread<Summary>(url, { from: 1, to: runs / 2 }),
    inThread<Summary>(url, { from: runs / 2 + 1, to: runs }),
  ])

/** In the thread: simulates each of its seeds, and returns how to repeat those that failed, and what was wrong. */
export async function failuresOf<Outcome extends { readonly problems: readonly string[] }>(
  simulate: (seed: number) => Promise<Outcome>,
  count: (outcome: Outcome) => void,
): Promise<string[]> {
  const { from, to }: Seeds = workerData
  const failures: string[] = []
  for (let seed = from; seed <= to && failures.length < MAX_FAILURES; seed++) {
    const outcome = await simulate(seed)
    if (outcome.problems.length > 0) failures.push(`TOLLGATE_SEED=${seed}: ${outcome.problems.join('; ')}`)
    count(outcome)
  }
  return failures
}
