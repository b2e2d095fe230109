/** Runs the seeds of tasks that it is given, in a thread, and answers what they came to. */
import { parentPort, workerData } from 'node:worker_threads'
import { failuresOf, inThread, inTwoThreads } from '../seeds-in-a-thread.ts'
import { LIES } from './task-faults.ts'
import { simulate } from './world.ts'

interface Summary {
  readonly failures: readonly string[]
  readonly deaths: number
  readonly looks: number
  /** How many tasks ended so. */
  readonly ends: Readonly<Record<string, number>>
}

export const runSeeds = (runs: number) => inTwoThreads<Summary>(import.meta.url, runs)

/** Returns what the seeds up to that one find first of each error that is put in. */
export const findErrors = (runsPerLie: number) =>
  inThread<Readonly<Record<string, string | undefined>>>(import.meta.url, { runsPerLie })

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

async function findEach(runsPerLie: number): Promise<Record<string, string | undefined>> {
  const found: Record<string, string | undefined> = {}
  for (const [what, lies] of LIES)
    for (let seed = 1; seed <= runsPerLie && found[what] === undefined; seed++)
      found[what] = (await simulate(seed, lies)).problems[0]
  return found
}

const { runsPerLie } = workerData ?? {}
parentPort?.postMessage(await (runsPerLie === undefined ? run() : findEach(runsPerLie)))
