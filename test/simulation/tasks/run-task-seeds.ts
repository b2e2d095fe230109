/** Runs the seeds of tasks that it is given, in a thread, and answers what they came to. */
import { parentPort } from 'node:worker_threads'
import { failuresOf, inTwoThreads } from '../seeds-in-a-thread.ts'
import { simulate } from './world.ts'

interface Summary {
  readonly failures: readonly string[]
  readonly deaths: number
  readonly looks: number
  /** How many tasks ended so. */
  readonly ends: Readonly<Record<string, number>>
}

export const runSeeds = (runs: number) => inTwoThreads<Summary>(import.meta.url, runs)

async function run(): Promise<Summary> {
  const ends: Record<string, number> = {}
  let [deaths, looks] = [0, 0]
  const failures = await failuresOf(simulate, (outcome) => {
    deaths += outcome.deaths
    looks += outcome.looks
    for (const end of outcome.ends) ends[end] = (ends[end] ?? 0) + 1
  })
  return { failures, deaths, looks, ends }
}

parentPort?.postMessage(await run())
