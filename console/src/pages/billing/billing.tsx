/** The wallet of an account and its ledger. */
import { type UseQueryResult, useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { type ReactNode, useEffect } from 'react'
import type { OperationPath } from '../../../../schemas/routes.ts'
import type { AnswerOf } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { PageHeader, QueryState, Stat } from '../../ui/states.tsx'
import { Money } from '../../ui/text.tsx'
import { Alerts } from '../alerts.tsx'
import { Budgets } from '../budgets/budgets.tsx'
import { AutomaticTopUp, Cards } from './automatic.tsx'
import { useCurrency } from './currency.ts'
import { Ledger } from './ledger.tsx'
import { Payments } from './payments.tsx'
import { TopUp } from './top-up.tsx'

const route = getRouteApi('/signed-in/billing')

interface WalletProps {
  readonly accountId: string
  readonly account: UseQueryResult<AnswerOf<'showAccount'>>
}

function Wallet({ accountId, account }: WalletProps) {
  const inCurrency = useCurrency(accountId)
  if (!account.isSuccess) return <QueryState query={account} rows={2} />
  const { balance, held, used } = account.data.wallet
  return (
    <dl className="mb-5 grid gap-3 sm:grid-cols-3">
      <Stat name={t('Balance')} value={<Money amount={balance} />} note={inCurrency(balance)} />
      <Stat name={t('Held')} value={<Money amount={held} />} note={t('credits, for running tasks')} />
      <Stat name={t('Spent')} value={<Money amount={used} />} note={t('credits since the beginning')} />
    </dl>
  )
}

interface ReturnNoticeProps {
  /** The search parameter in the address that the provider returns to. */
  readonly name: 'payment' | 'saved'
  readonly children: ReactNode
}

/** Says how a visit to the payment provider ended. */
function ReturnNotice({ name, children }: ReturnNoticeProps) {
  const change = useChangeSearch()
  return (
    <div
      role="status"
      className="mb-5 flex flex-wrap items-center gap-3 rounded-lg border border-line bg-surface p-4"
    >
      <p className="grow">{children}</p>
      <Button kind="quiet" onClick={() => change({ [name]: undefined }, { isReplaced: true })}>
        {t('Close')}
      </Button>
    </div>
  )
}

/** The payment that the customer returns from; the notice changes when it is booked. */
function ReturnedPayment({ id }: { readonly id: string }) {
  const queries = useQueryClient()
  const shown = useGet('showPayment', { id })
  const state = shown.data?.state
  useEffect(() => {
    if (state !== 'paid') return
    void queries.invalidateQueries({
      predicate: ({ queryKey }) => queryKey[0] !== ('/payments/{id}' satisfies OperationPath),
    })
  }, [state, queries])
  if (shown.data === undefined) return null
  const { credits, failure_message: failure } = shown.data
  return (
    <ReturnNotice name="payment">
      {state === 'paid' ? (
        <>
          {t('Payment booked. Credits added:')} <Money amount={credits} />
        </>
      ) : state === 'failed' || state === 'expired' ? (
        <>
          {t('The payment did not succeed.')} {failure}
        </>
      ) : (
        t('Payment pending: the credits are added as soon as the provider confirms it.')
      )}
    </ReturnNotice>
  )
}

/** The notice after the provider has saved a card. */
function SavedCard({ accountId }: { readonly accountId: string }) {
  const queries = useQueryClient()
  const cards = useGet('listCards', { account_id: accountId })
  const last4 = cards.data?.data[0]?.last4
  useEffect(() => {
    if (last4 !== undefined)
      void queries.invalidateQueries({ queryKey: ['/automatic-top-up' satisfies OperationPath] })
  }, [last4, queries])
  return (
    <ReturnNotice name="saved">
      {last4 === undefined
        ? t('The card appears here as soon as the provider confirms it.')
        : t('The card {last4} is saved. It pays for automatic top-ups.', { last4 })}
    </ReturnNotice>
  )
}

export function Billing() {
  const { account_id: accountId, role } = useAccount()
  const { payment, saved } = route.useSearch()
  const mayChange = role === 'owner' || role === 'billing'
  const { data: offer } = useGet('showOffer', { account_id: accountId })
  const account = useGet('showAccount', { id: accountId })
  const balance = account.data?.wallet.balance
  return (
    <>
      <PageHeader
        title={t('Billing')}
        description={t("The account's wallet, its payments, and its ledger, newest first.")}
      />
      {payment !== undefined && <ReturnedPayment id={payment} />}
      {saved === 'card' && <SavedCard accountId={accountId} />}
      <Wallet accountId={accountId} account={account} />
      <div className="flex flex-col gap-5">
        {offer?.takes_cards && (
          <>
            <div className="grid items-start gap-5 lg:grid-cols-2">
              {mayChange && <TopUp accountId={accountId} offer={offer} />}
              <Cards accountId={accountId} mayChange={mayChange} />
            </div>
            <AutomaticTopUp accountId={accountId} offer={offer} balance={balance} mayChange={mayChange} />
            <Payments accountId={accountId} />
          </>
        )}
        <Budgets
          title={t('Budgets of the account')}
          subject={{ account_id: accountId }}
          mayChange={mayChange}
        />
        {balance !== undefined && <Ledger accountId={accountId} balance={balance} />}
        <Alerts accountId={accountId} mayChange={mayChange} />
      </div>
    </>
  )
}
