/** What credits are worth in the currency of the cards. */
import { useGet } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { t } from '../../i18n.ts'

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
