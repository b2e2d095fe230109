import { FLAG, givenOptions, readSeed, TEXT, wholeNumber } from '../harness/command-line.ts'

export interface Options {
  readonly help: boolean
  /** Pages of the largest base; the comparison has {@link COMPARED_PAGES}. */
  readonly pages: number
  readonly seed: number
  /** The folder for results; null is the default. */
  readonly out: string | null
}

/** The number of pages for the comparison. */
export const COMPARED_PAGES = 5_000
/** A run of at least this many pages is a full one, whose results the repository keeps. */
export const FULL_PAGES = 100_000
const MOST_PAGES = 500_000

export const usage = (): string =>
  `npm run bench:search -- [options]

  --pages N   pages of the largest base (default 5k, half a minute; the full size is 100k, two minutes)
  --seed N    another corpus and other queries (default 1)
  --out DIR   write the results there
  --help      this text
`

/** Reads the command line. Throws UsageError for an unknown option or value. */
export const parseOptions = (args: string[]): Options => {
  const values = givenOptions(args, { help: FLAG, pages: TEXT, seed: TEXT, out: TEXT })
  return {
    pages:
      values.pages === undefined
        ? COMPARED_PAGES
        : wholeNumber('pages', values.pages, COMPARED_PAGES, MOST_PAGES),
    seed: readSeed(values.seed),
    help: values.help ?? false,
    out: values.out ?? null,
  }
}
