/** One account for operators: wallet, limits, adjustments, and its pages as its owner sees them. */

import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet, useList } from '../../api/read.ts'
import { useSession } from '../../api/session.ts'
import { beginView } from '../../api/viewing.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmButton } from '../../ui/dialog.tsx'
import { Actions, AmountField, Field, Form } from '../../ui/form.tsx'
import { ErrorState, Panel, QueryState, Stat } from '../../ui/states.tsx'
import { Id, Money } from '../../ui/text.tsx'
import { LedgerTable } from '../ledger-table.tsx'

export type Account = AnswerOf<'listAccounts'>['data'][number]

/** The accounts, and the ledger of each. */
const CHANGED = ['/accounts'] as const

const limitOf = (text: string): number | null => (text.trim() === '' ? null : Number(text))

function Limits({ account, mayChange }: { readonly account: Account; readonly mayChange: boolean }) {
  const [rpm, setRpm] = useState(String(account.requests_per_minute ?? ''))
  const [concurrency, setConcurrency] = useState(String(account.concurrency ?? ''))
  const save = useMutation({
    meta: { done: t('Account changed'), changes: CHANGED },
    mutationFn: () =>
      request('updateAccount', {
        id: account.id,
        requests_per_minute: limitOf(rpm),
        concurrency: limitOf(concurrency),
      }),
  })
  const limit = { hint: t('Empty: as configured'), type: 'number', min: 1, readOnly: !mayChange }
  return (
    <Panel title={t('Limits')}>
      <Form className="grid gap-3 p-4 sm:grid-cols-2" onSubmit={() => mayChange && save.mutate()}>
        <Field label={t('Requests per minute')} {...limit} value={rpm} onText={setRpm} />
        <Field label={t('Calls at the same time')} {...limit} value={concurrency} onText={setConcurrency} />
        <ErrorState error={save.error} />
        {mayChange && (
          <div className="sm:col-span-2">
            <Button type="submit" isBusy={save.isPending}>
              {t('Save limits')}
            </Button>
          </div>
        )}
      </Form>
    </Panel>
  )
}

function Adjustment({ account }: { readonly account: Account }) {
  const [amount, setAmount] = useState('')
  const [reason, setReason] = useState('')
  const [idempotencyKey, setIdempotencyKey] = useState(() => crypto.randomUUID())
  const book = useMutation({
    meta: { done: t('Adjustment booked'), changes: CHANGED },
    mutationFn: () => request('adjust', { id: account.id, amount, reason }, { idempotencyKey }),
    onSuccess: () => {
      setAmount('')
      setReason('')
      setIdempotencyKey(crypto.randomUUID())
    },
  })
  return (
    <Panel title={t('Adjust the balance')}>
      <Form className="grid gap-3 p-4 sm:grid-cols-[10rem_1fr]" onSubmit={() => book.mutate()}>
        <AmountField
          label={t('Credits')}
          hint={t('Negative to take away')}
          pattern="-?\d+(\.\d{1,8})?"
          value={amount}
          onText={setAmount}
        />
        <Field
          label={t('Reason')}
          hint={t('For the ledger and the audit record')}
          required
          value={reason}
          onText={setReason}
        />
        {book.error && (
          <div className="sm:col-span-2">
            <ErrorState error={book.error} />
          </div>
        )}
        <div className="sm:col-span-2">
          <Button type="submit" isBusy={book.isPending}>
            {t('Book the adjustment')}
          </Button>
        </div>
      </Form>
    </Panel>
  )
}

export function AccountDetail({ id }: { readonly id: string }) {
  const mayChange = useSession().user.installation_role === 'operator'
  const shown = useGet('showAccount', { id })
  const ledger = useList('listLedger', { id, limit: 20 })
  const meta = { done: t('Account changed'), changes: CHANGED }
  const setEnabled = (enabled: boolean) => request('updateAccount', { id, enabled })
  const enable = useMutation({ meta, mutationFn: () => setEnabled(true) })
  const view = useMutation({
    mutationFn: () => request('viewAccount', { id }),
    onSuccess: () => beginView(id),
  })
  if (!shown.isSuccess) return <QueryState query={shown} />
  const account = shown.data
  return (
    <>
      <div className="flex flex-wrap items-center justify-between gap-2">
        <div>
          <p className="font-semibold text-lg">{account.name}</p>
          <Id id={account.id} />
        </div>
        <Actions>
          <Link to="/calls" search={{ account: id }} className="self-center text-accent text-sm underline">
            {t('View its calls')}
          </Link>
          {mayChange && (
            <Button isBusy={view.isPending} onClick={() => view.mutate()}>
              {t('View as its owner')}
            </Button>
          )}
          {mayChange && account.enabled && (
            <ConfirmButton
              kind="danger"
              title={t('Disable {name}', { name: account.name })}
              description={t('Every key of the account is refused until it is enabled again.')}
              name={account.name}
              act={t('Disable')}
              meta={meta}
              onConfirm={() => setEnabled(false)}
            />
          )}
          {mayChange && !account.enabled && (
            <Button isBusy={enable.isPending} onClick={() => enable.mutate()}>
              {t('Enable')}
            </Button>
          )}
        </Actions>
      </div>
      <dl className="grid gap-3 sm:grid-cols-3">
        <Stat name={t('Balance')} value={<Money amount={account.wallet.balance} />} note={t('credits')} />
        <Stat name={t('Held')} value={<Money amount={account.wallet.held} />} note={t('credits')} />
        <Stat name={t('Used')} value={<Money amount={account.wallet.used} />} note={t('credits')} />
      </dl>
      <ErrorState error={enable.error ?? view.error} />
      {mayChange && <Adjustment account={account} />}
      <Limits account={account} mayChange={mayChange} />
      <LedgerTable list={ledger} />
    </>
  )
}
