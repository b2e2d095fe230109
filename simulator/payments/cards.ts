/** Test cards, by their numbers, and what becomes of a charge. */

/** `confirm`: only its customer can go on. */
type CardAnswer = 'paid' | 'confirm' | { readonly declined: string; readonly message: string }

type TestCard = {
  readonly brand: string
  /** While the customer is there. */
  readonly present: CardAnswer
  /** While the customer is away, with the card saved before. */
  readonly absent: CardAnswer
}

const declined = (code: string, message: string): CardAnswer => ({ declined: code, message })
const REFUSED = declined('generic_decline', 'Your card was declined.')
const NO_MONEY = declined('insufficient_funds', 'Your card has insufficient funds.')

const TEST_CARDS: Readonly<Record<string, TestCard>> = {
  '4242424242424242': { brand: 'visa', present: 'paid', absent: 'paid' },
  '5555555555554444': { brand: 'mastercard', present: 'paid', absent: 'paid' },
  '4000000000000002': { brand: 'visa', present: REFUSED, absent: REFUSED },
  '4000000000009995': { brand: 'visa', present: NO_MONEY, absent: NO_MONEY },
  // It can be saved, and each charge of it fails.
  '4000000000000341': { brand: 'visa', present: 'paid', absent: REFUSED },
  // 3-D Secure once, when it is saved.
  '4000002500003155': { brand: 'visa', present: 'confirm', absent: 'paid' },
  // 3-D Secure every time.
  '4000002760003184': { brand: 'visa', present: 'confirm', absent: 'confirm' },
}

/** Returns the test card of a number as a person types it; null for another number. */
export const testCard = (number: string): (TestCard & { readonly number: string }) | null => {
  const digits = number.replace(/\D/g, '')
  const card = TEST_CARDS[digits]
  return card === undefined ? null : { ...card, number: digits }
}
