/** Runs the seeds it is given, in a thread of its own, and answers what they came to. */
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { simulate } from './world.ts'

/** How many failing seeds are reported. */
const FAILURES_TOLD = 5
/** A run makes much that is short-lived. */
const YOUNG_GENERATION_MB = 64

interface Seeds {
  readonly from: number
  readonly to: number
}

export interface Summary {
  /** How to repeat each, and what was wrong. */
  readonly failures: readonly string[]
  readonly deaths: number
  readonly looks: number
  /** How many tasks ended so. */
  readonly ends: Readonly<Record<string, number>>
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
  const ends: Record<string, number> = {}
  let [deaths, looks] = [0, 0]
  for (let seed = from; seed <= to && failures.length < FAILURES_TOLD; seed++) {
    const outcome = await simulate(seed)
    if (outcome.problems.length > 0) failures.push(`TOLLGATE_SEED=${seed}: ${outcome.problems.join('; ')}`)
    deaths += outcome.deaths
    looks += outcome.looks
    for (const end of outcome.ends) ends[end] = (ends[end] ?? 0) + 1
  }
  return { failures, deaths, looks, ends }
}

parentPort?.postMessage(await run(workerData))
