/**
 * Credits: the only money of the service. Inside the program an amount is a `bigint` that counts
 * units of 1e-8 credit; in JSON it is a decimal string without exponent and without trailing zeros.
 * See docs/api-rules.md, "Names and forms".
 */
import { z } from 'zod'

/** An amount in units of 1e-8 credit. May be negative (a charge in the ledger, a wallet just overdrawn). */
export type Credits = bigint

/** A price or a factor in units of 1e-12, so that prices per million tokens stay exact. */
export type Rate = bigint

export const CREDIT_DECIMALS = 8
export const RATE_DECIMALS = 12
export const ONE_CREDIT: Credits = 10n ** BigInt(CREDIT_DECIMALS)
export const ONE_RATE: Rate = 10n ** BigInt(RATE_DECIMALS)

/** No wallet, price or top-up may have more digits before the point: the sum of all of them still fits a BIGINT. */
const MAX_WHOLE_DIGITS = 10
const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?$/
/** Zeros included. A longer text costs more than its length to read. */
const MAX_DECIMAL_CHARS = 100

function parseScaled(text: string, decimals: number, what: string): bigint {
  if (text.length > MAX_DECIMAL_CHARS)
    throw new RangeError(`${what} has more than ${MAX_DECIMAL_CHARS} characters`)
  const match = DECIMAL.exec(text)
  if (!match)
    throw new RangeError(`${what} must be a decimal number like "19.41", not ${JSON.stringify(text)}`)
  const [, sign, whole = '', fraction = ''] = match
  if (whole.replace(/^0+/, '').length > MAX_WHOLE_DIGITS)
    throw new RangeError(`${what} has more than ${MAX_WHOLE_DIGITS} digits before the point: ${text}`)
  if (fraction.replace(/0+$/, '').length > decimals)
    throw new RangeError(`${what} has more than ${decimals} decimal places: ${text}`)
  const scaled = BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, '0'))
  return sign === '-' ? -scaled : scaled
}

/** Prints a whole number of units of 10^-decimals as an exact decimal. */
export function printScaled(value: bigint, decimals: number): string {
  const negative = value < 0n
  const digits = (negative ? -value : value).toString().padStart(decimals + 1, '0')
  const point = digits.length - decimals
  const whole = digits.slice(0, point)
  const fraction = digits.slice(point).replace(/0+$/, '')
  return `${negative ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`
}

/** Parses "19.41" to 1941000000n. Throws a RangeError with the reason. */
export const parseCredits = (text: string): Credits => parseScaled(text, CREDIT_DECIMALS, 'An amount')

/** Prints 1941000000n as "19.41". */
export const printCredits = (amount: Credits): string => printScaled(amount, CREDIT_DECIMALS)

/** Parses "0.8" to 800000000000n. Throws a RangeError with the reason. */
export const parseRate = (text: string): Rate => parseScaled(text, RATE_DECIMALS, 'A price')

/** Prints 800000000000n as "0.8". */
export const printRate = (rate: Rate): string => printScaled(rate, RATE_DECIMALS)

/** Returns `numerator / denominator`, rounded half up (away from zero on a tie for positive amounts). */
export function divideHalfUp(numerator: bigint, denominator: bigint): bigint {
  const doubled = 2n * numerator + denominator
  const divisor = 2n * denominator
  const quotient = doubled / divisor
  return doubled % divisor < 0n ? quotient - 1n : quotient
}

const decimalText = (parse: (text: string) => bigint, decimals: number) =>
  z
    .union([z.string(), z.number().transform(String)])
    .transform((text, context) => {
      try {
        return parse(text)
      } catch (error) {
        context.addIssue({ code: 'custom', message: (error as Error).message })
        return z.NEVER
      }
    })
    // A number may lose digits on its way: the reference names only the text.
    .meta({
      anyOf: undefined,
      type: 'string',
      pattern: `^-?\\d{1,${MAX_WHOLE_DIGITS}}(\\.\\d{1,${decimals}})?$`,
    })

// The console calculates with amounts and needs no zod: marked as pure, the schemas stay out of its files.
/** A decimal string (or a YAML number) read as credits. */
export const creditsText = /* @__PURE__ */ decimalText(parseCredits, CREDIT_DECIMALS)

const notNegative = () =>
  decimalText(parseRate, RATE_DECIMALS).refine((rate) => rate >= 0n, 'A price is never negative')
/** A decimal string (or a YAML number) read as a price or factor; never negative. */
export const rateText = /* @__PURE__ */ notNegative()
