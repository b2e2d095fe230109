import { parseArgs } from 'node:util'
import { UsageError } from '../options.ts'

export interface Options {
  readonly help: boolean
  readonly tasks: number
  /** How old the youngest task is when looks are counted: looks come at a tenth of a task's age. */
  readonly ageMs: number
  /** Looks are counted for so long. */
  readonly windowMs: number
  /** The upstream ends all of them in the course of this time. */
  readonly spreadMs: number
  readonly seed: number
  /** Where results are written; null is the place of the run's size. */
  readonly out: string | null
}

/** From so many tasks on a run is the full one, whose results the repository keeps. */
export const FULL_TASKS = 10_000
const USUAL_TASKS = 1_000
const MOST_TASKS = 50_000
const SMALL = { ageMs: 15_000, windowMs: 15_000, spreadMs: 20_000 }
/** At this age looks come as seldom as they ever do. */
const LARGE = { ageMs: 100_000, windowMs: 30_000, spreadMs: 60_000 }

export const usage = (): string =>
  `npm run bench:tasks -- [options]

  --tasks N   open tasks at once (default 1k, a minute and a half; the full size is 10k, six minutes)
  --seed N    another order in which they end (default 1)
  --out DIR   write the results there
  --help      this text
`

/** `2500` or `10k`. */
const count = (value: string): number => {
  const [, digits, suffix] = /^(\d+(?:\.\d+)?)(k?)$/i.exec(value.replaceAll('_', '')) ?? []
  const number = Number(digits) * (suffix === '' ? 1 : 1_000)
  if (Number.isInteger(number) && number >= 1 && number <= MOST_TASKS) return number
  throw new UsageError(`--tasks must be a whole number from 1 to ${MOST_TASKS}, not "${value}"`)
}

const seedOf = (value: string): number => {
  if (/^\d{1,9}$/.test(value)) return Number(value)
  throw new UsageError(`--seed must be a whole number of at most nine digits, not "${value}"`)
}

/** Reads the command line. Throws {@link UsageError} for what it does not understand. */
export const parseOptions = (args: string[]): Options => {
  const text = { type: 'string' } as const
  const known = { help: { type: 'boolean' } as const, tasks: text, seed: text, out: text }
  const values = (() => {
    try {
      return parseArgs({ args, options: known }).values
    } catch (error) {
      throw new UsageError((error as Error).message)
    }
  })()
  const tasks = values.tasks === undefined ? USUAL_TASKS : count(values.tasks)
  return {
    ...(tasks >= FULL_TASKS ? LARGE : SMALL),
    tasks,
    seed: values.seed === undefined ? 1 : seedOf(values.seed),
    help: values.help ?? false,
    out: values.out ?? null,
  }
}
