/** What needs an operator now: failing channels, alerts, accounts to look at. */

import { useMutation } from '@tanstack/react-query'
import { CircleCheck } from 'lucide-react'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet, useList } from '../../api/read.ts'
import { useSession } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { Dialog, DialogButton } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { DialogForm, Field } from '../../ui/form.tsx'
import { Badge, Panel, QueryState } from '../../ui/states.tsx'
import { type Column, ListPanel, Table } from '../../ui/table.tsx'
import { Code, Money, TextLink, Time } from '../../ui/text.tsx'
import { ChannelHolds, ChannelStatus } from '../channel-holds.tsx'
import { StatusNotes } from './status-notes.tsx'

type Health = AnswerOf<'showHealth'>
type Channel = Health['channels'][number]
type Alert = AnswerOf<'listOperatorAlerts'>['data'][number]

const Window = ({ attempts, failures }: Channel['last_hour']) => (
  <span className="tabular">{t('{failures} of {attempts} failed', { failures, attempts })}</span>
)

function Channels({ channels, mayChange }: { channels: readonly Channel[]; mayChange: boolean }) {
  const columns: Column<Channel>[] = [
    {
      name: t('Channel'),
      cell: ({ id, is_failing, state, breaker }) => (
        <span className="flex flex-wrap items-center gap-2">
          <span className="font-medium">{id}</span>
          {is_failing ? (
            <Badge tone="bad">{t('Failing')}</Badge>
          ) : (
            <Badge tone="warn">{t('Has failed')}</Badge>
          )}
          <ChannelStatus state={state} breaker={breaker} />
        </span>
      ),
    },
    {
      name: t('Last error'),
      cell: ({ last_error: error }) =>
        error && (
          <span className="block max-w-md whitespace-normal">
            <Time at={error.at} /> <Code>{error.code}</Code>{' '}
            <span className="break-words text-quiet">{error.message}</span>
          </span>
        ),
    },
    { name: t('Last hour'), cell: ({ last_hour }) => <Window {...last_hour} /> },
    { name: t('Last day'), cell: ({ last_day }) => <Window {...last_day} /> },
    {
      name: t('Actions'),
      cell: ({ id, state }) => (
        <span className="flex flex-wrap items-center gap-2">
          <TextLink to="/all-calls" search={{ channel_id: id, status: 'error,interrupted' }}>
            {t('Failed calls')}
          </TextLink>
          {mayChange && <ChannelHolds id={id} state={state} />}
        </span>
      ),
    },
  ]
  return <Table caption={t('Failing channels')} columns={columns} rows={channels} toKey={({ id }) => id} />
}

function Acknowledge({ alert, onClose }: { readonly alert: Alert; onClose(): void }) {
  const form = useFields(`alert ${alert.id}`, { note: '' })
  const acknowledge = useMutation({
    meta: { done: t('Alert acknowledged'), changes: ['/installation/alerts', '/installation/health'] },
    mutationFn: () => request('acknowledgeAlert', { id: alert.id, note: form.values.note }),
    onSuccess: onClose,
  })
  return (
    <Dialog title={t('Acknowledge the alert')} description={describeAlert(alert)} onClose={onClose}>
      <DialogForm sends={acknowledge} fields={form} submit={t('Acknowledge')}>
        <Field
          label={t('Note')}
          hint={t('What you did, for the other operators.')}
          maxLength={500}
          {...form.field('note')}
        />
      </DialogForm>
    </Dialog>
  )
}

function describeAlert({ type, subject_id: name }: Alert): string {
  if (type === 'channel.opened') return t('The channel {name} fails: calls avoid it.', { name })
  if (type === 'channel.closed') return t('The channel {name} works again.', { name })
  if (type === 'journal.silent') return t('The journal {name} is silent: its calls are not booked.', { name })
  if (type === 'webhook.disabled')
    return t('The webhook {name} was switched off because it failed for days.', { name })
  return `${type} ${name}`
}

function Alerts({ mayChange }: { readonly mayChange: boolean }) {
  const list = useList('listOperatorAlerts', {})
  const columns: Column<Alert>[] = [
    { name: t('Time'), isTime: true, cell: ({ created_at }) => <Time at={created_at} /> },
    { name: t('Alert'), cell: (alert) => <span className="whitespace-normal">{describeAlert(alert)}</span> },
    {
      name: t('Actions'),
      cell: (alert) =>
        mayChange && (
          <DialogButton dialog={(onClose) => <Acknowledge alert={alert} onClose={onClose} />}>
            {t('Acknowledge')}
          </DialogButton>
        ),
    },
  ]
  return (
    <ListPanel
      title={t('Alerts')}
      list={list}
      columns={columns}
      empty={{ title: t('There are no open alerts.'), icon: CircleCheck, docs: 'operating.md' }}
    />
  )
}

interface MoneyListProps {
  readonly title: string
  readonly accounts: readonly {
    readonly account_id: string
    readonly name: string | null
    readonly note: string
    readonly amount: string
  }[]
}

const MoneyList = ({ title, accounts }: MoneyListProps) =>
  accounts.length > 0 && (
    <Panel title={title}>
      <ul className="divide-y divide-line">
        {accounts.map(({ account_id: id, name, note, amount }) => (
          <li key={id} className="flex flex-wrap items-center justify-between gap-2 px-4 py-2">
            <TextLink to="/accounts" search={{ open: id }}>
              {name ?? id}
            </TextLink>
            <span className="text-sm">
              <Money amount={amount} /> <span className="text-quiet">{note}</span>
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  )

export function HealthPanels() {
  const mayChange = useSession().user.installation_role === 'operator'
  const health = useGet('showHealth', {})
  if (!health.data) return <QueryState query={health} rows={3} />
  const { channels, is_log_read, negative_balances: negative, unusual_spend: unusual } = health.data
  const failing = channels.filter(({ is_failing }) => is_failing).map(({ id }) => id)
  return (
    <div className="mb-4 flex flex-col gap-4">
      {failing.length > 0 ? (
        <p role="alert" className="rounded-md border border-bad bg-bad-wash p-3 font-medium text-bad">
          {t('{count, plural, one {# channel is failing:} other {# channels are failing:}}', {
            count: failing.length,
          })}{' '}
          {failing.join(', ')}
        </p>
      ) : (
        <p role="status" className="rounded-md border border-line bg-surface p-3 text-good">
          {t('No channel is failing.')}
        </p>
      )}
      {!is_log_read && (
        <p role="alert" className="rounded-md border border-warn bg-warn-wash p-3 text-warn">
          {t('The call log does not answer, so failures may be missing here.')}
        </p>
      )}
      {channels.length > 0 && (
        <Panel title={t('Failing channels')}>
          <Channels channels={channels} mayChange={mayChange} />
        </Panel>
      )}
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 xl:grid-cols-2">
        <Alerts mayChange={mayChange} />
        <div className="flex min-w-0 flex-col gap-4">
          <StatusNotes mayChange={mayChange} />
          <MoneyList
            title={t('Balances below zero')}
            accounts={negative.map((one) => ({ ...one, amount: one.balance, note: t('credits') }))}
          />
          <MoneyList
            title={t('Unusual spend in the last hour')}
            accounts={unusual.map(({ usual_hour, last_hour, ...one }) => ({
              ...one,
              amount: last_hour,
              note: t('credits; usually {amount} an hour', { amount: usual_hour }),
            }))}
          />
        </div>
      </div>
    </div>
  )
}
