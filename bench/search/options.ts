import { parseArgs } from 'node:util'
import { UsageError } from '../options.ts'

export interface Options {
  readonly help: boolean
  /** Pages of the largest base; the comparison has {@link COMPARED_PAGES}. */
  readonly pages: number
  readonly seed: number
  /** Where results are written; null is the place of the run's size. */
  readonly out: string | null
}

/** What is compared is compared over so many. */
export const COMPARED_PAGES = 5_000
/** From so many pages on a run is the full one, whose results the repository keeps. */
export const FULL_PAGES = 100_000
const MOST_PAGES = 500_000

export const usage = (): string =>
  `npm run bench:search -- [options]

  --pages N   pages of the largest base (default 5k, half a minute; the full size is 100k, two minutes)
  --seed N    another corpus and other queries (default 1)
  --out DIR   write the results there
  --help      this text
`

/** `2500` or `10k`. */
const count = (value: string): number => {
  const [, digits, suffix] = /^(\d+(?:\.\d+)?)(k?)$/i.exec(value.replaceAll('_', '')) ?? []
  const number = Number(digits) * (suffix === '' ? 1 : 1_000)
  if (Number.isInteger(number) && number >= COMPARED_PAGES && number <= MOST_PAGES) return number
  throw new UsageError(
    `--pages must be a whole number from ${COMPARED_PAGES} to ${MOST_PAGES}, not "${value}"`,
  )
}

const seedOf = (value: string): number => {
  if (/^\d{1,9}$/.test(value)) return Number(value)
  throw new UsageError(`--seed must be a whole number of at most nine digits, not "${value}"`)
}

/** Reads the command line. Throws {@link UsageError} for what it does not understand. */
export const parseOptions = (args: string[]): Options => {
  const text = { type: 'string' } as const
  const known = { help: { type: 'boolean' } as const, pages: text, seed: text, out: text }
  const values = (() => {
    try {
      return parseArgs({ args, options: known }).values
    } catch (error) {
      throw new UsageError((error as Error).message)
    }
  })()
  return {
    pages: values.pages === undefined ? COMPARED_PAGES : count(values.pages),
    seed: values.seed === undefined ? 1 : seedOf(values.seed),
    help: values.help ?? false,
    out: values.out ?? null,
  }
}
