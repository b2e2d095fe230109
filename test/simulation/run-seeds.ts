/** Runs the seeds of wallets and settlement that it is given, in a thread, and answers what they came to. */
import { parentPort } from 'node:worker_threads'
import { failuresOf, inTwoThreads } from './seeds-in-a-thread.ts'
import { simulate } from './world.ts'

interface Summary {
  readonly failures: readonly string[]
  readonly deaths: number
  readonly rows: number
  readonly interrupted: number
}

export const runSeeds = (runs: number) => inTwoThreads<Summary>(import.meta.url, runs)

async function run(): Promise<Summary> {
  let [deaths, rows, interrupted] = [0, 0, 0]
  const failures = await failuresOf(simulate, (outcome) => {
    deaths += outcome.deaths
    rows += outcome.rows.length
    interrupted += outcome.rows.filter(({ status }) => status === 'interrupted').length
  })
  return { failures, deaths, rows, interrupted }
}

parentPort?.postMessage(await run())
