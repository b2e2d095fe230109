import { FLAG, givenOptions, readSeed, TEXT, wholeNumber } from '../harness/command-line.ts'

export interface Options {
  readonly help: boolean
  readonly tasks: number
  /** The age of the youngest task when counting begins. Polls come at a tenth of a task's age. */
  readonly ageMs: number
  /** How long polls are counted. */
  readonly windowMs: number
  /** The time in which the upstream ends all tasks. */
  readonly spreadMs: number
  readonly seed: number
  /** The folder for results; null is the default. */
  readonly out: string | null
}

/** A run of at least this many tasks is a full one, whose results the repository keeps. */
export const FULL_TASKS = 10_000
const USUAL_TASKS = 1_000
const MOST_TASKS = 50_000
const SMALL = { ageMs: 15_000, windowMs: 15_000, spreadMs: 20_000 }
/** At this age polls have reached their longest interval. */
const LARGE = { ageMs: 100_000, windowMs: 30_000, spreadMs: 60_000 }

export const usage = (): string =>
  `npm run bench:tasks -- [options]

  --tasks N   open tasks at once (default 1k, a minute and a half; the full size is 10k, six minutes)
  --seed N    another order in which they end (default 1)
  --out DIR   write the results there
  --help      this text
`

/** Reads the command line. Throws UsageError for an unknown option or value. */
export const parseOptions = (args: string[]): Options => {
  const values = givenOptions(args, { help: FLAG, tasks: TEXT, seed: TEXT, out: TEXT })
  const tasks = values.tasks === undefined ? USUAL_TASKS : wholeNumber('tasks', values.tasks, 1, MOST_TASKS)
  return {
    ...(tasks >= FULL_TASKS ? LARGE : SMALL),
    tasks,
    seed: readSeed(values.seed),
    help: values.help ?? false,
    out: values.out ?? null,
  }
}
