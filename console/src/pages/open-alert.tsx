/** The alert that a balance is low or used up, for those who can top it up. */
import { Link } from '@tanstack/react-router'
import type { AnswerOf } from '../api/client.ts'
import { useGet } from '../api/read.ts'
import { printExact } from '../format.ts'
import { t } from '../i18n.ts'

interface OpenAlertProps {
  readonly accountId: string
  readonly wallet: NonNullable<AnswerOf<'showHome'>['wallet']>
}

export function OpenAlert({ accountId, wallet: { balance, held, used } }: OpenAlertProps) {
  const alerts = useGet('showAlerts', { account_id: accountId }, { refetchOnMount: 'always' })
  const threshold = alerts.data?.balance_low ?? null
  // Held credits count, as they do in the alert.
  const total = Number(balance) + Number(held)
  const isEmpty = total <= 0
  if (!isEmpty && (threshold === null || total >= Number(threshold))) return null
  const isNew = isEmpty && Number(used) === 0
  return (
    <p
      role={isNew ? 'status' : 'alert'}
      className={`mb-4 rounded-md border p-3 ${isNew ? 'border-line' : isEmpty ? 'border-bad bg-bad-wash text-bad' : 'border-line text-warn'}`}
    >
      {isNew
        ? t('The wallet is empty. Top it up before the first call.')
        : isEmpty
          ? t('The balance is used up: calls are refused.')
          : t('The balance is below {threshold} credits.', { threshold: printExact(threshold ?? '') })}{' '}
      <Link to="/billing" search={{ account: accountId }} className="underline">
        {t('Billing')}
      </Link>
    </p>
  )
}
