import { FLAG, givenOptions, TEXT, wholeNumber } from '../harness/command-line.ts'

export interface Options {
  readonly help: boolean
  /** Calls of each measurement of a busy account. */
  readonly calls: number
  /** Accounts that begin in the same moment. */
  readonly accounts: number
  /** Keys of one account. */
  readonly keys: number
}

const DEFAULTS = { calls: 6_000, accounts: 10_000, keys: 1_000_000 } as const

export const usage = (): string =>
  `npm run bench:uneven -- [options]

  --calls N     calls while one account has half of them (default 6k)
  --accounts N  accounts that begin in the same moment (default 10k)
  --keys N      keys of one account (default 1m)
  --help        this text
`

/** Reads the command line. Throws UsageError for an unknown option or value. */
export const parseOptions = (args: string[]): Options => {
  const values = givenOptions(args, { help: FLAG, calls: TEXT, accounts: TEXT, keys: TEXT })
  const count = (name: keyof typeof DEFAULTS, least: number, most: number) =>
    values[name] === undefined ? DEFAULTS[name] : wholeNumber(name, values[name], least, most)
  return {
    help: values.help ?? false,
    calls: count('calls', 100, 1_000_000),
    accounts: count('accounts', 10, 100_000),
    keys: count('keys', 10, 5_000_000),
  }
}
