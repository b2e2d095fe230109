/** One account, for operators: wallet, limits, adjustments, and the view as its owner. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { type Credits, parseCredits, printCredits } from '../../../../schemas/money.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet, useList } from '../../api/read.ts'
import { useSession } from '../../api/session.ts'
import { beginView } from '../../api/viewing.ts'
import { printExact } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Action, ConfirmDialog } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { Actions, AmountField, Field, NumberField, PageForm } from '../../ui/form.tsx'
import { Panel, QueryState, Stat } from '../../ui/states.tsx'
import { Id, Money, TextLink } from '../../ui/text.tsx'
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

function parseOrNull(text: string): Credits | null {
  try {
    return parseCredits(text)
  } catch {
    return null
  }
}

function Adjustment({ account }: { readonly account: Account }) {
  const form = useFields(`adjustment of ${account.id}`, { amount: '', reason: '' })
  const { field } = form
  const [isAsking, setAsking] = useState(false)
  const [idempotencyKey, setIdempotencyKey] = useState(() => crypto.randomUUID())
  const book = useMutation({
    meta: { done: t('Adjustment booked'), changes: CHANGED },
    mutationFn: () => request('adjust', { id: account.id, ...form.values }, { idempotencyKey }),
    onSuccess: () => {
      form.reset({ amount: '', reason: '' })
      setIdempotencyKey(crypto.randomUUID())
      setAsking(false)
    },
  })
  const rules = useGet('showWalletRules', {})
  const amount = parseOrNull(form.values.amount)
  const balance = parseCredits(account.wallet.balance)
  const after = balance + (amount ?? 0n)
  // While the limit is not known, every adjustment is large.
  const isLarge =
    rules.data === undefined ||
    (amount !== null && (amount < 0n ? -amount : amount) > parseCredits(rules.data.confirm_above))
  const shown = t('The balance goes from {before} to {after} credits.', {
    before: printExact(printCredits(balance)),
    after: printExact(printCredits(after)),
  })
  return (
    <Panel title={t('Adjust the balance')}>
      <PageForm
        // Its draft stays until the adjustment is booked.
        sends={{ ...book, error: null, mutateAsync: async () => setAsking(true) }}
        submit={t('Book the adjustment')}
        note={amount !== null && amount !== 0n && <span className="text-quiet text-sm">{shown}</span>}
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
      {isAsking && amount !== null && (
        <ConfirmDialog
          title={t('Adjust the balance of {name}', { name: account.name })}
          effects={[
            shown,
            ...(after < 0n ? [t('Calls are refused while the balance is below zero.')] : []),
            ...(isLarge && rules.data
              ? [
                  t('This is more than {limit} credits, so type the amount.', {
                    limit: rules.data.confirm_above,
                  }),
                ]
              : []),
          ]}
          {...(isLarge && { name: form.values.amount })}
          submit={t('Book it')}
          sends={book}
          onClose={() => setAsking(false)}
        />
      )}
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
            name,
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
