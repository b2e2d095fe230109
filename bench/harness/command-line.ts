/** Shared parts of the bench programs' command lines. */
import { type ParseArgsConfig, parseArgs } from 'node:util'

/** Wrong usage; the user sees the message. */
export class UsageError extends Error {}

/** Kinds of options. */
export const FLAG = { type: 'boolean' } as const
export const TEXT = { type: 'string' } as const
export const TEXTS = { type: 'string', multiple: true } as const

/** Reads the options. Throws {@link UsageError} for an unknown option and for a positional argument. */
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

/** Reads `250000`, `250k` or `1.5m`. Throws {@link UsageError} unless it is a whole number from `least` to `most`. */
export const wholeNumber = (name: string, value: string, least: number, most: number): number => {
  const [, digits, suffix = ''] = /^(\d+(?:\.\d+)?)([km]?)$/i.exec(value.replaceAll('_', '')) ?? []
  const number = Number(digits) * SUFFIXES[suffix.toLowerCase()]!
  if (Number.isInteger(number) && number >= least && number <= most) return number
  throw new UsageError(`--${name} must be a whole number from ${least} to ${most}, not "${value}"`)
}

const MOST_SEED = 2 ** 31

/** Reads the seed, 1 by default. Throws {@link UsageError} for an invalid one. */
export const readSeed = (value: string | undefined): number =>
  value === undefined ? 1 : wholeNumber('seed', value, 0, MOST_SEED)
