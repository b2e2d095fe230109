import { givenOptions, seedOf, UsageError, wholeNumber } from '../harness/command-line.ts'

/** How much is built and how often it is asked. */
export interface Size {
  readonly rows: number
  readonly postgresRows: number
  /** Each question is asked so often, unless its time is up before. */
  readonly samples: number
  /** No question is put to one engine for longer, all samples together. */
  readonly questionLimitMs: number
}

/** What is built is kept where the next run with `--keep` looks for it. */
export const KEEP = Symbol('keep')

export interface Options extends Size {
  readonly help: boolean
  readonly seed: number
  /** Where what is built is kept for the next run, `KEEP` for the place that the bench has for it; null removes it. */
  readonly data: string | typeof KEEP | null
  /** Where results are written; null is the place of the run's size. */
  readonly out: string | null
}

/** From so many rows on, here and there, a run is the full one, whose results the repository keeps. */
export const FULL_ROWS = 100_000_000
export const FULL_POSTGRES_ROWS = 10_000_000
const USUAL: Size = { rows: 1_000_000, postgresRows: 200_000, samples: 50, questionLimitMs: 400 }
const QUICK: Size = { rows: 200_000, postgresRows: 50_000, samples: 30, questionLimitMs: 250 }
/** Runs of more rows than this take longer to build than to measure, so they may measure at leisure. */
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
  --samples N         times each question is asked at most (default 50, from 5m rows on 300)
  --quick             a minute: 200k rows, 50k in PostgreSQL, 30 samples
  --data DIR          build there and keep it: what is there from a run like this one is used again, and what one
                      that was broken off has left is gone on with
  --keep              the same, in the checkout's own cache (node_modules/.cache/tollgate-bench-logs)
  --seed N            another set of rows and questions (default 1)
  --out DIR           write the results there
  --help              this text
`

const sizeOf = (quick: boolean, rows: number | null): Size => {
  const base = quick ? QUICK : USUAL
  if (rows === null) return base
  const postgresRows = Math.max(Math.ceil(rows / POSTGRES_PART), Math.min(rows, base.postgresRows))
  if (quick || rows < LARGE_ROWS) return { ...base, rows, postgresRows }
  return { rows, postgresRows, samples: LARGE_SAMPLES, questionLimitMs: LARGE_QUESTION_LIMIT_MS }
}

/** Reads the command line. Throws {@link UsageError} for what it does not understand. */
export const parseOptions = (args: string[]): Options => {
  const flag = { type: 'boolean' } as const
  const text = { type: 'string' } as const
  const values = givenOptions(args, {
    help: flag,
    quick: flag,
    rows: text,
    'postgres-rows': text,
    samples: text,
    seed: text,
    data: text,
    keep: flag,
    out: text,
  })
  const given = (name: 'rows' | 'postgres-rows' | 'samples', least: number, most: number) =>
    values[name] === undefined ? null : wholeNumber(name, values[name], least, most)
  if (values.keep && values.data !== undefined) throw new UsageError('--keep or --data DIR, not both')
  const size = sizeOf(values.quick ?? false, given('rows', LEAST_ROWS, MOST_ROWS))
  const postgresRows = values['postgres-rows'] === '0' ? 0 : given('postgres-rows', LEAST_ROWS, MOST_ROWS)
  return {
    ...size,
    postgresRows: postgresRows ?? size.postgresRows,
    samples: given('samples', 1, MOST_SAMPLES) ?? size.samples,
    seed: seedOf(values.seed),
    help: values.help ?? false,
    data: values.keep ? KEEP : (values.data ?? null),
    out: values.out ?? null,
  }
}
