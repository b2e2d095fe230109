/** One account, for operators: wallet, limits, adjustments, and the view as its owner. */

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { readTyped } from '../../../../src/core/confirmation.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet, useList } from '../../api/read.ts'
import { useSession } from '../../api/session.ts'
import { beginView } from '../../api/viewing.ts'
import { t } from '../../i18n.ts'
import { Action } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { Actions, AmountField, Field, NumberField, PageForm } from '../../ui/form.tsx'
import { Panel, QueryState, Stat } from '../../ui/states.tsx'
import { Id, Money, TextLink } from '../../ui/text.tsx'
import { parseOrNull, useBalanceChange } from '../balance-change.tsx'
import { LedgerTable } from '../ledger-table.tsx'

export type Account = AnswerOf<'listAccounts'>['data'][number]

/** The accounts, and the ledger of each. */
const CHANGED = ['/accounts'] as const

const parseLimit = (text: string): number | null => (text.trim() === '' ? null : Number(text))

function Limits({ account, mayChange }: { readonly account: Account; readonly mayChange: boolean }) {
  const form = useFields(`limits of ${account.id}`, {
    requests_per_minute: String(account.requests_per_minute ?? ''),
    concurrency: String(account.concurrency ?? ''),
  })
  const { values, field } = form
  const save = useMutation({
    meta: { done: t('Account changed'), changes: CHANGED },
    mutationFn: () =>
      request('updateAccount', {
        id: account.id,
        requests_per_minute: parseLimit(values.requests_per_minute),
        concurrency: parseLimit(values.concurrency),
      }),
  })
  const limit = {
    hint: t('Leave empty for the configured limit.'),
    min: 1,
    readOnly: !mayChange,
  }
  return (
    <Panel title={t('Limits')}>
      <PageForm
        sends={save}
        fields={form}
        submit={mayChange ? t('Save limits') : null}
        className="grid gap-3 p-4 sm:grid-cols-2"
      >
        <NumberField label={t('Requests per minute')} {...limit} {...field('requests_per_minute')} />
        <NumberField label={t('Concurrent calls')} {...limit} {...field('concurrency')} />
      </PageForm>
    </Panel>
  )
}

function Adjustment({ account: { id, name } }: { readonly account: Account }) {
  const form = useFields(`adjustment of ${id}`, { amount: '', reason: '' })
  const { values, field } = form
  const [idempotencyKey, setIdempotencyKey] = useState(() => crypto.randomUUID())
  const book = useMutation({
    meta: { done: t('Adjustment booked'), changes: CHANGED },
    mutationFn: () => request('adjust', { id, ...values }, { idempotencyKey }),
    onSuccess: () => setIdempotencyKey(crypto.randomUUID()),
  })
  const { sends, note, question } = useBalanceChange({
    accountId: id,
    change: parseOrNull(values.amount),
    operation: 'adjust',
    amount: values.amount,
    title: t('Adjust the balance of {name}', { name }),
    submit: t('Book it'),
    book,
  })
  return (
    <Panel title={t('Adjust the balance')}>
      <PageForm
        sends={sends}
        fields={{ ...form, keep: form.restart }}
        submit={t('Book the adjustment')}
        note={note}
        className="grid gap-3 p-4 sm:grid-cols-[10rem_1fr]"
      >
        <AmountField
          label={t('Credits')}
          hint={t('Enter a negative amount to deduct credits.')}
          min={undefined}
          {...field('amount')}
        />
        <Field
          label={t('Reason')}
          hint={t('It appears in the ledger and in the audit record.')}
          required
          {...field('reason')}
        />
      </PageForm>
      {question}
    </Panel>
  )
}

function AccountActions({ account: { id, name, enabled } }: { readonly account: Account }) {
  const changed = { done: t('Account changed'), changes: CHANGED }
  return (
    <>
      <Action run={() => request('viewAccount', { id })} onDone={() => beginView(id)}>
        {t('View as its owner')}
      </Action>
      {enabled ? (
        <Action
          {...changed}
          kind="danger"
          confirm={{
            title: t('Disable {name}', { name }),
            description: t('Every key of the account is refused until the account is enabled again.'),
            name: readTyped('updateAccount', { name }),
            submit: t('Disable'),
          }}
          run={() => request('updateAccount', { id, enabled: false })}
        >
          {t('Disable')}
        </Action>
      ) : (
        <Action {...changed} run={() => request('updateAccount', { id, enabled: true })}>
          {t('Enable')}
        </Action>
      )}
    </>
  )
}

export function AccountDetail({ id }: { readonly id: string }) {
  const mayChange = useSession().user.installation_role === 'operator'
  const shown = useGet('showAccount', { id })
  const ledger = useList('listLedger', { id, limit: 20 })
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
          <TextLink isAmongWords to="/calls" search={{ account: id }} className="self-center text-sm">
            {t('View its calls')}
          </TextLink>
          {mayChange && <AccountActions account={account} />}
        </Actions>
      </div>
      <dl className="grid gap-3 sm:grid-cols-3">
        <Stat name={t('Balance')} value={<Money amount={account.wallet.balance} />} note={t('credits')} />
        <Stat name={t('Held')} value={<Money amount={account.wallet.held} />} note={t('credits')} />
        <Stat name={t('Used')} value={<Money amount={account.wallet.used} />} note={t('credits')} />
      </dl>
      {mayChange && <Adjustment account={account} />}
      <Limits account={account} mayChange={mayChange} />
      <LedgerTable list={ledger} />
    </>
  )
}
