/** The saved card of an account, and its automatic top-up. */
import { useMutation } from '@tanstack/react-query'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { printExact, printTime } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Action } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { AmountField, CheckField, PageForm } from '../../ui/form.tsx'
import { Panel, QueryState } from '../../ui/states.tsx'
import { printCardPrice } from './currency.ts'

type Automatic = AnswerOf<'showAutomaticTopUp'>

interface CardsProps {
  readonly accountId: string
  readonly mayChange: boolean
}

export function Cards({ accountId, mayChange }: CardsProps) {
  const cards = useGet('listCards', { account_id: accountId })
  return (
    <Panel title={t('Payment method')}>
      <div className="flex flex-col gap-3 p-4">
        <QueryState query={cards} rows={1} />
        {cards.data?.data.length === 0 && <p className="text-quiet">{t('No card is saved.')}</p>}
        <ul className="flex flex-col gap-2">
          {cards.data?.data.map(({ id, brand, last4, expires }) => (
            <li key={id} className="flex flex-wrap items-center justify-between gap-2">
              <span>
                <span className="capitalize">{brand}</span> •••• {last4}{' '}
                <span className="text-quiet text-sm">{t('until {expires}', { expires })}</span>
              </span>
              {mayChange && (
                <Action
                  aria-label={t('Remove the card {last4}', { last4 })}
                  confirm={{
                    title: t('Remove the card {last4}', { last4 }),
                    description: t('Automatic top-up can no longer charge it.'),
                    submit: t('Remove'),
                  }}
                  done={t('Card removed')}
                  changes={['/cards', '/automatic-top-up']}
                  run={() => request('removeCard', { id, account_id: accountId })}
                >
                  {t('Remove')}
                </Action>
              )}
            </li>
          ))}
        </ul>
        {mayChange && (
          <div>
            <Action
              run={() => request('saveCard', { account_id: accountId })}
              onDone={({ url }) => window.location.assign(url)}
            >
              {t('Save a card')}
            </Action>
          </div>
        )}
      </div>
    </Panel>
  )
}

interface AutomaticTopUpProps extends CardsProps {
  readonly offer: AnswerOf<'showOffer'>
  /** Credits; undefined while it is loading. */
  readonly balance: string | undefined
}

export function AutomaticTopUp({ accountId, ...props }: AutomaticTopUpProps) {
  const shown = useGet('showAutomaticTopUp', { account_id: accountId })
  const cards = useGet('listCards', { account_id: accountId })
  return (
    <Panel title={t('Automatic top-up')}>
      <QueryState query={shown} />
      {shown.data && <AutomaticForm settings={shown.data} card={cards.data?.data[0]} {...props} />}
    </Panel>
  )
}

/** Says why automatic top-ups pause; null if they do not. */
function explainPause({ enabled, off_reason, waits_for, waits_until, failures }: Automatic): string | null {
  if (off_reason === 'failures') return t('Switched off after {failures} failed attempts.', { failures })
  if (off_reason === 'method_removed') return t('Switched off because the card was removed.')
  if (off_reason === 'refund') return t('Switched off because a payment was refunded.')
  if (off_reason === 'chargeback') return t('Switched off because a payment was disputed.')
  if (!enabled || waits_until === null || Date.parse(waits_until) <= Date.now()) return null
  const until = printTime(waits_until)
  return waits_for === 'month'
    ? t('The monthly maximum is reached. Top-ups continue on {until}.', { until })
    : t('The last attempt failed. The next one is after {until}.', { until })
}

interface AutomaticFormProps extends Omit<AutomaticTopUpProps, 'accountId'> {
  readonly settings: Automatic
  /** The one that pays; undefined without one. */
  readonly card: AnswerOf<'listCards'>['data'][number] | undefined
}

interface PlanProps extends Pick<AutomaticFormProps, 'card' | 'offer' | 'balance'> {
  readonly values: { readonly enabled: boolean; readonly threshold: string; readonly amount: string }
}

/** Says what the automatic top-up does with these values, and to which card. */
function Plan({ card, offer, balance, values: { enabled, threshold, amount } }: PlanProps) {
  const price = printCardPrice(amount, offer)
  if (!enabled || price === null || balance === undefined) return null
  if (card === undefined)
    return (
      <p role="status" className="rounded-md bg-warn-wash p-3 text-warn">
        {t('Save a card first: there is none to charge.')}
      </p>
    )
  const values = {
    price,
    card: `${card.brand.charAt(0).toUpperCase()}${card.brand.slice(1)} •••• ${card.last4}`,
    threshold: printExact(threshold),
  }
  const isNow = Number(balance) < Number(threshold)
  return (
    <p role="status" className={`rounded-md p-3 ${isNow ? 'bg-warn-wash text-warn' : 'bg-raised'}`}>
      {isNow
        ? t(
            'The balance is below {threshold} credits now: saving this charges {price} to {card} at once.',
            values,
          )
        : t('When the balance falls below {threshold} credits, {card} is charged {price}.', values)}
    </p>
  )
}

function AutomaticForm({ settings, card, offer, balance, mayChange }: AutomaticFormProps) {
  const form = useFields(`automatic top-up of ${settings.account_id}`, {
    enabled: settings.enabled,
    threshold: settings.threshold ?? '100',
    amount: settings.amount ?? '500',
    monthly_maximum: settings.monthly_maximum ?? '5000',
  })
  const save = useMutation({
    meta: { done: t('Automatic top-up saved'), changes: ['/automatic-top-up'] },
    mutationFn: () => request('setAutomaticTopUp', { account_id: settings.account_id, ...form.values }),
  })
  const pause = explainPause(settings)
  const { field } = form
  const amount = { readOnly: !mayChange }
  return (
    <PageForm sends={save} fields={form} submit={mayChange ? t('Save automatic top-up') : null}>
      {pause !== null && (
        <p role="status" className="rounded-md bg-warn-wash p-3 text-warn">
          {pause}
        </p>
      )}
      <CheckField
        label={t('Charge the saved card when the balance is low')}
        disabled={!mayChange}
        {...form.check('enabled')}
      />
      <div className="grid gap-3 sm:grid-cols-3">
        <AmountField
          label={t('When the balance is below')}
          hint={t('credits')}
          {...amount}
          {...field('threshold')}
        />
        <AmountField
          label={t('Credits to add')}
          hint={t('at least {minimum}', { minimum: printExact(offer.minimum) })}
          {...amount}
          {...field('amount')}
        />
        <AmountField
          label={t('Monthly maximum')}
          hint={t('in credits; months begin in UTC')}
          {...amount}
          {...field('monthly_maximum')}
        />
      </div>
      {mayChange && <Plan card={card} offer={offer} balance={balance} values={form.values} />}
    </PageForm>
  )
}
