/** The wallet of an account and its ledger. */
import { getRouteApi } from '@tanstack/react-router'
import { useGet, useList } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { PageHeader, QueryState, Stat } from '../../ui/states.tsx'
import { Money } from '../../ui/text.tsx'
import { Alerts } from '../alerts.tsx'
import { Budgets } from '../budgets/budgets.tsx'
import { LedgerTable } from '../ledger-table.tsx'
import { AutomaticTopUp, Cards } from './automatic.tsx'
import { Payments } from './payments.tsx'
import { SavedCard } from './saved-card.tsx'
import { ReturnedPayment, TopUp } from './top-up.tsx'

const route = getRouteApi('/signed-in/billing')

function Wallet({ accountId }: { accountId: string }) {
  const account = useGet('showAccount', { id: accountId })
  if (!account.isSuccess) return <QueryState query={account} rows={2} />
  const { balance, held, used } = account.data.wallet
  return (
    <dl className="mb-5 grid gap-3 sm:grid-cols-3">
      <Stat name={t('Balance')} value={<Money amount={balance} />} note={t('credits to spend')} />
      <Stat name={t('Held')} value={<Money amount={held} />} note={t('for tasks that run')} />
      <Stat name={t('Spent')} value={<Money amount={used} />} note={t('credits since the beginning')} />
    </dl>
  )
}

export function Billing() {
  const { account_id: accountId, role } = useAccount()
  const { payment, saved } = route.useSearch()
  const mayChange = role === 'owner' || role === 'billing'
  const offer = useGet('showOffer', { account_id: accountId })
  const list = useList('listLedger', { id: accountId })
  return (
    <>
      <PageHeader
        title={t('Billing')}
        description={t(
          'The wallet of the account, its payments, and every entry of its ledger, newest first.',
        )}
      />
      {payment !== undefined && <ReturnedPayment id={payment} />}
      {saved === 'card' && <SavedCard accountId={accountId} />}
      <Wallet accountId={accountId} />
      <div className="flex flex-col gap-5">
        {offer.data?.takes_cards && (
          <div className="grid items-start gap-5 lg:grid-cols-2">
            {mayChange && <TopUp accountId={accountId} offer={offer.data} />}
            <Cards accountId={accountId} mayChange={mayChange} />
          </div>
        )}
        {offer.data?.takes_cards && (
          <AutomaticTopUp accountId={accountId} minimum={offer.data.minimum} mayChange={mayChange} />
        )}
        {offer.data?.takes_cards && <Payments accountId={accountId} />}
        <Budgets
          title={t('Budgets of the account')}
          subject={{ account_id: accountId }}
          mayChange={mayChange}
        />
        <LedgerTable list={list} />
        <Alerts accountId={accountId} mayChange={mayChange} />
      </div>
    </>
  )
}
