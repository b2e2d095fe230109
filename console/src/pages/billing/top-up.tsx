/** A top-up by card: the user chooses an amount and pays on the provider's page. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { type AnswerOf, request } from '../../api/client.ts'
import { printExact, printMoney } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { AmountField, CheckField, PageForm } from '../../ui/form.tsx'
import { Panel } from '../../ui/states.tsx'
import { printCardPrice } from './currency.ts'

type Offer = AnswerOf<'showOffer'>

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
    // The next attempt is a new payment.
    onError: () => setIdempotencyKey(crypto.randomUUID()),
  })
  const changeCredits = (text: string) => {
    setCredits(text)
    setIdempotencyKey(crypto.randomUUID())
  }
  const { currency, credits_per_unit: rate } = offer
  const price = printCardPrice(credits, offer)
  return (
    <Panel title={t('Top up by card')}>
      <PageForm
        sends={start}
        submit={t('Go to payment')}
        kind="primary"
        note={
          price && (
            <span role="status">
              {t('{credits} credits for {price}. You pay on the next page.', {
                credits: printExact(credits),
                price,
              })}
            </span>
          )
        }
      >
        {offer.is_simulated && (
          <p className="text-quiet text-sm">
            {t('This is a demonstration: pay with the test card 4242 4242 4242 4242. No money moves.')}
          </p>
        )}
        <div className="flex flex-wrap gap-2">
          {offer.presets.map((preset) => (
            <Button
              key={preset.credits}
              aria-pressed={credits === preset.credits}
              kind={credits === preset.credits ? 'primary' : 'plain'}
              onClick={() => changeCredits(preset.credits)}
            >
              {t('{credits} for {price}', {
                credits: printExact(preset.credits),
                price: printMoney(preset.amount, currency ?? ''),
              })}
            </Button>
          ))}
        </div>
        <AmountField
          label={t('Credits')}
          hint={t('At least {minimum}. {rate} credits cost 1 {currency}.', {
            minimum: printExact(offer.minimum),
            rate: printExact(rate ?? ''),
            currency: currency?.toUpperCase() ?? '',
          })}
          name="credits"
          value={credits}
          onText={changeCredits}
        />
        <CheckField
          label={t('Save the card for automatic top-ups')}
          checked={savesCard}
          onCheck={(isChecked) => {
            setSavesCard(isChecked)
            setIdempotencyKey(crypto.randomUUID())
          }}
        />
      </PageForm>
    </Panel>
  )
}
