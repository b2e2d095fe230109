/**
 * The most that one call may cost, as its key or its header `X-Max-Price` says; the smaller one counts. See
 * docs/api-rules.md, "The highest price of a call".
 */
import { Failure } from '../../schemas/failure.ts'
import { type Credits, parseCredits, printCredits } from '../../schemas/money.ts'
import type { Caller } from './authenticate.ts'

const HEADER = 'x-max-price'

function readHeader(text: string): Credits {
  try {
    const price = parseCredits(text)
    if (price > 0n) return price
  } catch {
    // Not a decimal number.
  }
  throw new Failure('invalid_request', 'X-Max-Price: write credits above 0 as a decimal number, such as 2.5.')
}

/** Returns the highest price of a call; null where it may cost anything. @throws Failure `invalid_request` */
export function readMaxPrice({ known, request }: Caller): Credits | null {
  const { maxPrice: ofKey } = known.key
  const text = request.header(HEADER)
  if (text === '') return ofKey
  const wanted = readHeader(text)
  return ofKey !== null && ofKey < wanted ? ofKey : wanted
}

/**
 * Compares an estimate with the highest price of a call.
 * @param explain returns the part that most of the estimate is for, as `explainEstimate` has it
 * @throws Failure `invalid_request`
 */
export function assertPrice(
  { known }: Caller,
  maxPrice: Credits | null,
  estimate: Credits,
  explain = () => '',
): void {
  if (maxPrice === null || estimate <= maxPrice) return
  // An agent's key does not learn prices.
  if (known.key.kind === 'agent')
    throw new Failure('invalid_request', 'The call may cost more than its key allows for one call.')
  throw new Failure(
    'invalid_request',
    `The call may cost up to ${printCredits(estimate)} credits${explain()}, and at most ${printCredits(maxPrice)} are allowed for one call. ` +
      'Ask for less, or raise max_price of the key or X-Max-Price.',
  )
}
