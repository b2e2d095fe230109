/** Requests for keys: members ask, an owner or admin issues with a spend cap or denies. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { type AnswerOf, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { instantOfField } from '../../time-zone.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { AmountField, DialogForm, Done, Field } from '../../ui/form.tsx'
import { Badge, EmptyState, ErrorState } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { CodeBlock, Id, Time } from '../../ui/text.tsx'
import { Budgets } from '../budgets/budgets.tsx'
import { ExpiresField } from '../expires-field.tsx'
import { LimitFields } from '../keys/limits.tsx'
import { limitsOf, modelsOf, NO_LIMITS } from '../keys/texts.ts'

type KeyRequest = AnswerOf<'listKeyRequests'>['data'][number]
type Issued = AnswerOf<'approveKey'>

const TONES = { pending: 'warn', approved: 'good', denied: 'bad', withdrawn: 'neutral' } as const

const states = () => ({
  pending: t('Pending'),
  approved: t('Approved'),
  denied: t('Denied'),
  withdrawn: t('Withdrawn'),
})

function Approve({ accountId, asked, onClose }: { accountId: string; asked: KeyRequest; onClose(): void }) {
  const [cap, setCap] = useState('')
  const [models, setModels] = useState('')
  const [expires, setExpires] = useState('')
  const [limits, setLimits] = useState(NO_LIMITS)
  const [issued, setIssued] = useState<Issued | null>(null)
  const approve = useMutation({
    meta: { done: t('Request approved'), changes: ['/key-requests'] },
    mutationFn: () =>
      request('approveKey', {
        id: asked.id,
        account_id: accountId,
        spend_cap: cap,
        allowed_models: modelsOf(models),
        expires_at: instantOfField(expires),
        ...limitsOf(limits),
      }),
    onSuccess: setIssued,
  })
  return (
    <Dialog title={t('Issue {name}', { name: asked.name })} description={asked.note} onClose={onClose}>
      {issued ? (
        <div className="flex flex-col gap-3">
          <CodeBlock isWrapped label={t('Key')} code={issued.key} />
          <Budgets title={t('Budgets')} subject={{ account_id: accountId, key_id: issued.id }} mayChange />
          <Done onClose={onClose} />
        </div>
      ) : (
        <DialogForm sends={approve} act={t('Issue the key')} onClose={onClose}>
          <AmountField
            label={t('Spend cap in credits')}
            hint={t('What the key may spend in all.')}
            value={cap}
            onText={setCap}
          />
          <Field
            label={t('Models')}
            hint={t('Ids with commas between. Empty: every model; "none": no model.')}
            value={models}
            onText={setModels}
          />
          <ExpiresField value={expires} onText={setExpires} />
          <LimitFields texts={limits} onChange={setLimits} />
        </DialogForm>
      )}
    </Dialog>
  )
}

function Ask({ accountId, onClose }: { accountId: string; onClose(): void }) {
  const [name, setName] = useState('')
  const [note, setNote] = useState('')
  const ask = useMutation({
    meta: { done: t('Request sent'), changes: ['/key-requests'] },
    mutationFn: () => request('requestKey', { account_id: accountId, name, ...(note !== '' && { note }) }),
    onSuccess: onClose,
  })
  return (
    <Dialog title={t('Request a key')} onClose={onClose}>
      <DialogForm sends={ask} act={t('Request a key')} onClose={onClose}>
        <Field label={t('Name')} required value={name} onText={setName} />
        <Field label={t('Note')} hint={t('What the key is for.')} value={note} onText={setNote} />
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
  const [approving, setApproving] = useState<KeyRequest | null>(null)
  const [isAsking, setAsking] = useState(false)
  const list = useList('listKeyRequests', { account_id: accountId })
  const deny = useMutation({
    meta: { done: t('Request denied'), changes: ['/key-requests'] },
    mutationFn: ({ id }: KeyRequest) => request('denyKey', { id, account_id: accountId }),
  })
  const columns: Column<KeyRequest>[] = [
    { name: t('Name'), cell: ({ name }) => <span className="font-medium">{name}</span> },
    { name: t('Member'), cell: ({ member_id, member_email }) => member_email ?? <Id id={member_id} /> },
    { name: t('Note'), cell: ({ note }) => note ?? '–' },
    { name: t('State'), cell: ({ state }) => <Badge tone={TONES[state]}>{states()[state]}</Badge> },
    { name: t('Requested'), cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: t('Actions'),
      cell: (asked) =>
        isDecider &&
        asked.state === 'pending' && (
          <span className="flex gap-1">
            <Button onClick={() => setApproving(asked)}>{t('Issue the key')}</Button>
            <Button kind="quiet" onClick={() => deny.mutate(asked)}>
              {t('Deny')}
            </Button>
          </span>
        ),
    },
  ]
  return (
    <div className="flex flex-col gap-3">
      <div className="flex items-center justify-between">
        <h2 className="font-semibold text-lg">{t('Requests for keys')}</h2>
        {mayAsk && <Button onClick={() => setAsking(true)}>{t('Request a key')}</Button>}
      </div>
      <ErrorState error={deny.error} />
      <ListPanel
        caption={t('Requests for keys')}
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        empty={<EmptyState title={t('No one has requested a key.')} />}
      />
      {approving && <Approve accountId={accountId} asked={approving} onClose={() => setApproving(null)} />}
      {isAsking && <Ask accountId={accountId} onClose={() => setAsking(false)} />}
    </div>
  )
}
