/** The saved card of an account, and its automatic top-up. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { AmountField, CheckField, Form } from '../../ui/form.tsx'
import { ErrorState, FormError, Panel, QueryState } from '../../ui/states.tsx'
import { printTime } from '../../ui/text.tsx'
import { AMOUNT } from './top-up.tsx'

type Automatic = AnswerOf<'showAutomaticTopUp'>

const DEFAULTS = { threshold: '100', amount: '500', monthly_maximum: '5000' }

interface CardsProps {
  readonly accountId: string
  readonly mayChange: boolean
}

export function Cards({ accountId, mayChange }: CardsProps) {
  const cards = useGet('listCards', { account_id: accountId })
  const save = useMutation({
    mutationFn: () => request('saveCard', { account_id: accountId }),
    onSuccess: ({ url }) => window.location.assign(url),
  })
  const remove = useMutation({
    meta: { done: t('Card removed'), changes: ['/cards', '/automatic-top-up'] },
    mutationFn: (id: string) => request('removeCard', { id, account_id: accountId }),
  })
  return (
    <Panel title={t('Payment method')}>
      <div className="flex flex-col gap-3 p-4">
        {cards.error && <ErrorState error={cards.error} onRetry={() => void cards.refetch()} />}
        {cards.data?.data.length === 0 && <p className="text-quiet">{t('No card is saved.')}</p>}
        <ul className="flex flex-col gap-2">
          {cards.data?.data.map(({ id, brand, last4, expires }) => (
            <li key={id} className="flex flex-wrap items-center justify-between gap-2">
              <span>
                <span className="capitalize">{brand}</span> •••• {last4}{' '}
                <span className="text-quiet text-sm">{t('until {expires}', { expires })}</span>
              </span>
              {mayChange && (
                <Button
                  aria-label={t('Remove the card {last4}', { last4 })}
                  isBusy={remove.isPending}
                  onClick={() => remove.mutate(id)}
                >
                  {t('Remove')}
                </Button>
              )}
            </li>
          ))}
        </ul>
        <FormError error={save.error ?? remove.error} />
        {mayChange && (
          <div>
            <Button isBusy={save.isPending} onClick={() => save.mutate()}>
              {t('Save a card')}
            </Button>
          </div>
        )}
      </div>
    </Panel>
  )
}

interface AutomaticTopUpProps extends CardsProps {
  readonly minimum: string
}

export function AutomaticTopUp({ accountId, minimum, mayChange }: AutomaticTopUpProps) {
  const shown = useGet('showAutomaticTopUp', { account_id: accountId })
  return (
    <Panel title={t('Automatic top-up')}>
      <QueryState query={shown} />
      {shown.data && (
        <AutomaticForm
          key={String(shown.data.enabled)}
          settings={shown.data}
          minimum={minimum}
          mayChange={mayChange}
        />
      )}
    </Panel>
  )
}

/** Says why no top-up happens; null where one does. */
function hindranceOf({ enabled, off_reason, waits_for, waits_until, failures }: Automatic): string | null {
  if (off_reason === 'failures') return t('Switched off after {failures} failed attempts.', { failures })
  if (off_reason === 'method_removed') return t('Switched off, because the card was removed.')
  if (off_reason === 'refund') return t('Switched off, because a payment was refunded.')
  if (off_reason === 'chargeback') return t('Switched off, because a payment was disputed.')
  if (!enabled || waits_until === null || Date.parse(waits_until) <= Date.now()) return null
  const until = printTime(waits_until)
  return waits_for === 'month'
    ? t('The monthly maximum is reached. It continues on {until}.', { until })
    : t('The last attempt failed. The next one is after {until}.', { until })
}

interface AutomaticFormProps extends Omit<AutomaticTopUpProps, 'accountId'> {
  readonly settings: Automatic
}

function AutomaticForm({ settings, minimum, mayChange }: AutomaticFormProps) {
  const [enabled, setEnabled] = useState(settings.enabled)
  const [fields, setFields] = useState({
    threshold: settings.threshold ?? DEFAULTS.threshold,
    amount: settings.amount ?? DEFAULTS.amount,
    monthly_maximum: settings.monthly_maximum ?? DEFAULTS.monthly_maximum,
  })
  const save = useMutation({
    meta: { done: t('Automatic top-up saved'), changes: ['/automatic-top-up'] },
    mutationFn: () => request('setAutomaticTopUp', { account_id: settings.account_id, enabled, ...fields }),
  })
  const hindrance = hindranceOf(settings)
  const field = (name: keyof typeof fields, label: string, hint: string) => (
    <AmountField
      label={label}
      hint={hint}
      readOnly={!mayChange}
      pattern={AMOUNT}
      value={fields[name]}
      onText={(text) => setFields({ ...fields, [name]: text })}
    />
  )
  return (
    <Form className="flex flex-col gap-3 p-4" onSubmit={() => mayChange && save.mutate()}>
      {hindrance !== null && (
        <p role="status" className="rounded-md bg-warn-wash p-3 text-warn">
          {hindrance}
        </p>
      )}
      <CheckField
        label={t('Charge the saved card when the balance is low')}
        checked={enabled}
        disabled={!mayChange}
        onCheck={setEnabled}
      />
      <div className="grid gap-3 sm:grid-cols-3">
        {field('threshold', t('When the balance is below'), t('credits'))}
        {field('amount', t('Credits to add'), t('at least {minimum}', { minimum }))}
        {field('monthly_maximum', t('At most in a month'), t('credits, in months of UTC'))}
      </div>
      <FormError error={save.error} />
      {mayChange && (
        <div>
          <Button type="submit" isBusy={save.isPending}>
            {t('Save automatic top-up')}
          </Button>
        </div>
      )}
    </Form>
  )
}
