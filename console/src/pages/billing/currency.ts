/** What credits are worth in the currency of the cards. */
import { parseCredits } from '../../../../schemas/money.ts'
import { computePrice, printPrice } from '../../../../src/core/payments/price.ts'
import type { AnswerOf } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { printMoney } from '../../format.ts'
import { t } from '../../i18n.ts'

const CREDITS = /^\d{1,10}(\.\d{1,8})?$/

type Offer = AnswerOf<'showOffer'>

/** Prints what credits cost by card; null where they have no price, or the text is no amount. */
export function printCardPrice(credits: string, { currency, credits_per_unit: rate }: Offer): string | null {
  if (currency === null || rate === null || !CREDITS.test(credits)) return null
  const price = computePrice(parseCredits(credits), { currency, credits_per_unit: parseCredits(rate) })
  return printMoney(printPrice(price), currency)
}

/** Returns a function that prints the unit of an amount of credits, with its value where credits have a price. */
export function useCurrency(accountId: string): (credits: string) => string {
  const { role } = useAccount()
  const isReader = role === 'owner' || role === 'billing' || role === 'auditor'
  const { data } = useGet('showOffer', { account_id: accountId }, { enabled: isReader })
  const { credits_per_unit: rate = null, currency = null } = data ?? {}
  return (credits) => {
    if (rate === null || currency === null) return t('credits')
    const value = new Intl.NumberFormat('en', { style: 'currency', currency }).format(
      Number(credits) / Number(rate),
    )
    return t('credits, worth {value}', { value })
  }
}
