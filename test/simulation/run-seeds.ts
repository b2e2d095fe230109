/** Runs the seeds it is given, in a thread of its own, and answers what they came to. */
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { simulate } from './world.ts'

/** How many failing seeds are reported. */
const FAILURES_TOLD = 5
/** A run makes much that is short-lived. With room for it a fifth of the time is saved. */
const YOUNG_GENERATION_MB = 64

interface Seeds {
  readonly from: number
  readonly to: number
}

export interface Summary {
  /** How to repeat each, and what was wrong. */
  readonly failures: readonly string[]
  readonly deaths: number
  readonly rows: number
  readonly interrupted: number
}

/** Both ends count. */
export function runSeeds(seeds: Seeds): Promise<Summary> {
  return new Promise((resolve, reject) => {
    const resourceLimits = { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB }
    const worker = new Worker(new URL(import.meta.url), { workerData: seeds, resourceLimits })
    worker.once('message', resolve)
    worker.once('error', reject)
  })
}

async function run({ from, to }: Seeds): Promise<Summary> {
  const failures: string[] = []
  let [deaths, booked, interrupted] = [0, 0, 0]
  for (let seed = from; seed <= to && failures.length < FAILURES_TOLD; seed++) {
    const outcome = await simulate(seed)
    if (outcome.problems.length > 0) failures.push(`TOLLGATE_SEED=${seed}: ${outcome.problems.join('; ')}`)
    deaths += outcome.deaths
    booked += outcome.rows.length
    interrupted += outcome.rows.filter(({ status }) => status === 'interrupted').length
  }
  return { failures, deaths, rows: booked, interrupted }
}

parentPort?.postMessage(await run(workerData))
