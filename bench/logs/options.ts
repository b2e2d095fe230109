import { FLAG, givenOptions, readSeed, TEXT, UsageError, wholeNumber } from '../harness/command-line.ts'

/** The number of rows and of samples. */
interface Size {
  readonly rows: number
  readonly postgresRows: number
  /** The most samples of a query. */
  readonly samples: number
  /** The time limit for all samples of a query on one engine. */
  readonly questionLimitMs: number
}

/** Keeps the rows in the bench's own folder for the next run with `--keep`. */
export const KEEP = Symbol('keep')

export interface Options extends Size {
  readonly help: boolean
  readonly seed: number
  /** The folder that keeps the rows for the next run, `KEEP` for the bench's own; null removes them. */
  readonly data: string | typeof KEEP | null
  /** The folder for results; null is the default. */
  readonly out: string | null
}

/** A run of at least this many rows is a full one, whose results the repository keeps. */
export const FULL_ROWS = 100_000_000
export const FULL_POSTGRES_ROWS = 10_000_000
const USUAL: Size = { rows: 1_000_000, postgresRows: 200_000, samples: 50, questionLimitMs: 400 }
const QUICK: Size = { rows: 200_000, postgresRows: 50_000, samples: 30, questionLimitMs: 250 }
/** Runs of more rows take longer to build than to measure, so they take more samples. */
const LARGE_ROWS = 5_000_000
const LARGE_SAMPLES = 300
const LARGE_QUESTION_LIMIT_MS = 6_000
/** A large run has a tenth of its rows in PostgreSQL. */
const POSTGRES_PART = 10
const LEAST_ROWS = 10_000
const MOST_ROWS = 1_000_000_000
const MOST_SAMPLES = 10_000

export const usage = (): string =>
  `npm run bench:logs -- [options]

  --rows N            rows of the call log, such as 100m (default 1m; the full size is 100m)
  --postgres-rows N   rows of the plain PostgreSQL table (default 200k, a tenth of --rows where that is more);
                      0 leaves it out
  --samples N         the most samples of a query (default 50, from 5m rows on 300)
  --quick             a minute: 200k rows, 50k in PostgreSQL, 30 samples
  --data DIR          build in this folder and keep it; a later run with the same options uses the rows again, or
                      completes them
  --keep              the same, in the checkout's own cache (node_modules/.cache/tollgate-bench-logs)
  --seed N            another set of rows and queries (default 1)
  --out DIR           write the results there
  --help              this text
`

const readSize = (quick: boolean, rows: number | null): Size => {
  const base = quick ? QUICK : USUAL
  if (rows === null) return base
  const postgresRows = Math.max(Math.ceil(rows / POSTGRES_PART), Math.min(rows, base.postgresRows))
  if (quick || rows < LARGE_ROWS) return { ...base, rows, postgresRows }
  return { rows, postgresRows, samples: LARGE_SAMPLES, questionLimitMs: LARGE_QUESTION_LIMIT_MS }
}

/** Reads the command line. Throws {@link UsageError} for an unknown option or value. */
export const parseOptions = (args: string[]): Options => {
  const values = givenOptions(args, {
    help: FLAG,
    quick: FLAG,
    rows: TEXT,
    'postgres-rows': TEXT,
    samples: TEXT,
    seed: TEXT,
    data: TEXT,
    keep: FLAG,
    out: TEXT,
  })
  const given = (name: 'rows' | 'postgres-rows' | 'samples', least: number, most: number) =>
    values[name] === undefined ? null : wholeNumber(name, values[name], least, most)
  if (values.keep && values.data !== undefined) throw new UsageError('--keep or --data DIR, not both')
  const size = readSize(values.quick ?? false, given('rows', LEAST_ROWS, MOST_ROWS))
  const postgresRows = values['postgres-rows'] === '0' ? 0 : given('postgres-rows', LEAST_ROWS, MOST_ROWS)
  return {
    ...size,
    postgresRows: postgresRows ?? size.postgresRows,
    samples: given('samples', 1, MOST_SAMPLES) ?? size.samples,
    seed: readSeed(values.seed),
    help: values.help ?? false,
    data: values.keep ? KEEP : (values.data ?? null),
    out: values.out ?? null,
  }
}
