/** Requests for keys: a member asks, and an owner or admin issues a key with a spend cap or denies it. */

import { useMutation } from '@tanstack/react-query'
import { KeyRound } from 'lucide-react'
import { useState } from 'react'
import { type AnswerOf, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { useSession } from '../../api/session.ts'
import { parseFieldTime } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Action, Dialog, DialogButton } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { AmountField, DialogForm, Done, Field } from '../../ui/form.tsx'
import { StatusBadge, type Statuses } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Id, NONE, Time } from '../../ui/text.tsx'
import { Budgets } from '../budgets/budgets.tsx'
import { SecretDialog } from '../keys/keys.tsx'
import { LimitFields } from '../keys/limits.tsx'
import type { Created } from '../keys/status.tsx'
import { NO_LIMITS, parseLimits } from '../keys/values.ts'
import { ExpiresField, ModelsField } from '../token-fields.tsx'

type KeyRequest = AnswerOf<'listKeyRequests'>['data'][number]

const describeStatuses = (): Statuses<KeyRequest['state']> => ({
  pending: ['warn', t('Pending')],
  approved: ['good', t('Approved')],
  denied: ['bad', t('Denied')],
  withdrawn: ['neutral', t('Withdrawn')],
})

interface ApproveProps {
  readonly accountId: string
  readonly asked: KeyRequest
  onClose(): void
}

function Approve({ accountId, asked, onClose }: ApproveProps) {
  const form = useFields(`issue ${asked.id}`, {
    spend_cap: '',
    allowed_models: null as readonly string[] | null,
    expires_at: '',
    ...NO_LIMITS,
  })
  const { values, field, set } = form
  const approve = useMutation({
    meta: { done: t('Request approved'), changes: ['/key-requests'] },
    mutationFn: () =>
      request('approveKey', {
        id: asked.id,
        account_id: accountId,
        spend_cap: values.spend_cap,
        allowed_models: values.allowed_models && [...values.allowed_models],
        expires_at: parseFieldTime(values.expires_at),
        ...parseLimits(values),
      }),
  })
  const { data: issued } = approve
  return (
    <Dialog title={t('Issue {name}', { name: asked.name })} description={asked.note} onClose={onClose}>
      {issued ? (
        <div className="flex flex-col gap-3">
          <p>
            {t('{member} can now reveal the key in the requests on their Home.', {
              member: asked.member_email ?? asked.member_id,
            })}
          </p>
          <Budgets title={t('Budgets')} subject={{ account_id: accountId, key_id: issued.id }} mayChange />
          <Done onClose={onClose} />
        </div>
      ) : (
        <DialogForm sends={approve} fields={form} submit={t('Issue the key')}>
          <AmountField
            label={t('Spend cap in credits')}
            hint={t('What the key may spend in total.')}
            {...field('spend_cap')}
          />
          <ModelsField value={values.allowed_models} onChoose={(allowed_models) => set({ allowed_models })} />
          <ExpiresField {...field('expires_at')} />
          <LimitFields field={field} />
        </DialogForm>
      )}
    </Dialog>
  )
}

function Ask({ accountId, onClose }: Omit<ApproveProps, 'asked'>) {
  const form = useFields(`request in ${accountId}`, { name: '', note: '' })
  const { field } = form
  const { name, note } = form.values
  const ask = useMutation({
    meta: { done: t('Request sent'), changes: ['/key-requests'] },
    mutationFn: () => request('requestKey', { account_id: accountId, name, ...(note !== '' && { note }) }),
    onSuccess: onClose,
  })
  return (
    <Dialog title={t('Request a key')} onClose={onClose}>
      <DialogForm sends={ask} fields={form} submit={t('Request a key')}>
        <Field label={t('Name')} required {...field('name')} />
        <Field label={t('Note')} hint={t('What the key is for.')} {...field('note')} />
      </DialogForm>
    </Dialog>
  )
}

interface RequestsProps {
  readonly accountId: string
  readonly isDecider: boolean
  readonly mayAsk: boolean
}

export function Requests({ accountId, isDecider, mayAsk }: RequestsProps) {
  // Not in the row: the row of an approved request loses its buttons, but the dialog shows the key until it is closed.
  const [approving, setApproving] = useState<KeyRequest | null>(null)
  const { user: self } = useSession()
  const [revealed, setRevealed] = useState<Created | null>(null)
  const list = useList('listKeyRequests', { account_id: accountId })
  const statuses = describeStatuses()
  const columns: Column<KeyRequest>[] = [
    { name: t('Name'), cell: ({ name }) => <span className="font-medium">{name}</span> },
    { name: t('Member'), cell: ({ member_id, member_email }) => member_email ?? <Id id={member_id} /> },
    { name: t('Note'), cell: ({ note }) => note ?? NONE },
    { name: t('Status'), cell: ({ state }) => <StatusBadge statuses={statuses} status={state} /> },
    { name: t('Requested'), isTime: true, cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: t('Actions'),
      cell: (asked) =>
        asked.key_id !== null && asked.member_id === self.account_id ? (
          <Action kind="quiet" run={() => request('revealKey', { id: asked.key_id! })} onDone={setRevealed}>
            {t('Reveal the key')}
          </Action>
        ) : isDecider && asked.state === 'pending' ? (
          <span className="flex gap-1">
            <Button onClick={() => setApproving(asked)}>{t('Issue the key')}</Button>
            <Action
              kind="quiet"
              done={t('Request denied')}
              changes={['/key-requests']}
              run={() => request('denyKey', { id: asked.id, account_id: accountId })}
            >
              {t('Deny')}
            </Action>
          </span>
        ) : null,
    },
  ]
  return (
    <div className="flex flex-col gap-3">
      <div className="flex items-center justify-between">
        <h2 className="font-semibold text-lg">{t('Requests for keys')}</h2>
        {mayAsk && (
          <DialogButton dialog={(onClose) => <Ask accountId={accountId} onClose={onClose} />}>
            {t('Request a key')}
          </DialogButton>
        )}
      </div>
      <ListPanel
        caption={t('Requests for keys')}
        list={list}
        columns={columns}
        empty={{ title: t('Nobody has requested a key.'), icon: KeyRound, docs: 'organizations.md' }}
      />
      {revealed && <SecretDialog shown={revealed} onClose={() => setRevealed(null)} />}
      {approving && <Approve accountId={accountId} asked={approving} onClose={() => setApproving(null)} />}
    </div>
  )
}
