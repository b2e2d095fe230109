/** What the command lines of the bench programs have in common. */
import { type ParseArgsConfig, parseArgs } from 'node:util'

/** Wrong usage; the message is for the one who typed it. */
export class UsageError extends Error {}

/** The options that were given. Throws {@link UsageError} for one that is not known, and for a word beside them. */
export const givenOptions = <const Known extends NonNullable<ParseArgsConfig['options']>>(
  args: string[],
  known: Known,
) => {
  try {
    return parseArgs({ args, options: known }).values
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

const SUFFIXES: Readonly<Record<string, number>> = { '': 1, k: 1_000, m: 1_000_000 }

/** `250000`, `250k` or `1.5m`. Throws {@link UsageError} unless it is a whole number from `least` to `most`. */
export const wholeNumber = (name: string, value: string, least: number, most: number): number => {
  const [, digits, suffix = ''] = /^(\d+(?:\.\d+)?)([km]?)$/i.exec(value.replaceAll('_', '')) ?? []
  const number = Number(digits) * SUFFIXES[suffix.toLowerCase()]!
  if (Number.isInteger(number) && number >= least && number <= most) return number
  throw new UsageError(`--${name} must be a whole number from ${least} to ${most}, not "${value}"`)
}

const MOST_SEED = 2 ** 31

/** 1 where none is given. Throws {@link UsageError} for what is none. */
export const seedOf = (value: string | undefined): number =>
  value === undefined ? 1 : wholeNumber('seed', value, 0, MOST_SEED)
