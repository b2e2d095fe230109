/** A top-up by card: choose an amount, pay at the provider's page, and wait here until it is booked. */

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { OperationPath } from '../../../../schemas/routes.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { AmountField, CheckField, Form } from '../../ui/form.tsx'
import { FormError, Panel } from '../../ui/states.tsx'
import { Money, printAmount } from '../../ui/text.tsx'

type Offer = AnswerOf<'showOffer'>

const POLL_MS = 1_000
/** What is paid by card, in credits. */
export const AMOUNT = '\\d{1,10}(\\.\\d{1,8})?'

/** Prints money in its currency, such as `5.00 USD`. */
export const printMoney = (amount: string, currency: string): string =>
  `${printAmount(amount, 0)} ${currency.toUpperCase()}`

export function TopUp({ accountId, offer }: { readonly accountId: string; readonly offer: Offer }) {
  const [credits, setCredits] = useState(offer.presets[0]?.credits ?? offer.minimum)
  const [savesCard, setSavesCard] = useState(false)
  const [idempotencyKey, setIdempotencyKey] = useState(() => crypto.randomUUID())
  const start = useMutation({
    mutationFn: () =>
      request('startPayment', { account_id: accountId, credits, save_card: savesCard }, { idempotencyKey }),
    onSuccess: ({ url }) => {
      if (url !== null) window.location.assign(url)
    },
    // Another attempt is another payment.
    onError: () => setIdempotencyKey(crypto.randomUUID()),
  })
  const change = (text: string) => {
    setCredits(text)
    setIdempotencyKey(crypto.randomUUID())
  }
  const { currency, credits_per_unit: rate } = offer
  return (
    <Panel title={t('Top up by card')}>
      <Form className="flex flex-col gap-3 p-4" onSubmit={() => start.mutate()}>
        {offer.is_simulated && (
          <p className="text-quiet text-sm">
            {t('A demonstration: pay with the test card 4242 4242 4242 4242. No money moves.')}
          </p>
        )}
        <div className="flex flex-wrap gap-2">
          {offer.presets.map((preset) => (
            <Button
              key={preset.credits}
              aria-pressed={credits === preset.credits}
              kind={credits === preset.credits ? 'primary' : 'plain'}
              onClick={() => change(preset.credits)}
            >
              {t('{credits} for {price}', {
                credits: printAmount(preset.credits, 0),
                price: printMoney(preset.amount, currency ?? ''),
              })}
            </Button>
          ))}
        </div>
        <AmountField
          label={t('Credits')}
          hint={t('At least {minimum}; {rate} credits cost 1 {currency}', {
            minimum: offer.minimum,
            rate: rate ?? '',
            currency: currency?.toUpperCase() ?? '',
          })}
          pattern={AMOUNT}
          value={credits}
          onText={change}
        />
        <CheckField
          label={t('Keep the card for automatic top-ups')}
          checked={savesCard}
          onCheck={(isChecked) => {
            setSavesCard(isChecked)
            setIdempotencyKey(crypto.randomUUID())
          }}
        />
        <FormError error={start.error} />
        <div>
          <Button kind="primary" type="submit" isBusy={start.isPending}>
            {t('Go to payment')}
          </Button>
        </div>
      </Form>
    </Panel>
  )
}

/** The payment from whose page the customer comes back; it turns by itself once it is booked. */
export function ReturnedPayment({ id }: { readonly id: string }) {
  const queries = useQueryClient()
  const changeSearch = useChangeSearch()
  const shown = useGet(
    'showPayment',
    { id },
    {
      refetchInterval: ({ state: { data } }) =>
        data === undefined || data.state === 'created' || data.state === 'open' || data.state === 'confirming'
          ? POLL_MS
          : false,
    },
  )
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
    <div
      role="status"
      className="mb-5 flex flex-wrap items-center gap-3 rounded-lg border border-line bg-surface p-4"
    >
      <p className="grow">
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
      </p>
      <Button kind="quiet" onClick={() => changeSearch({ payment: undefined }, { isReplaced: true })}>
        {t('Close')}
      </Button>
    </div>
  )
}
