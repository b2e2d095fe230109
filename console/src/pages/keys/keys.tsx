/** The keys of an account: list, create, reveal, disable, revoke. */

import { getRouteApi } from '@tanstack/react-router'
import { KeyRound } from 'lucide-react'
import { useState } from 'react'
import { readTyped } from '../../../../src/core/confirmation.ts'
import { request } from '../../api/client.ts'
import { SUMS_MS, useGet, useList } from '../../api/read.ts'
import { useAccount, useSession } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { readZoneName } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Action, Dialog } from '../../ui/dialog.tsx'
import { Done } from '../../ui/form.tsx'
import { OpenLink } from '../../ui/open-link.tsx'
import { PageHeader } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Code, CodeBlock, Money, NONE, Time } from '../../ui/text.tsx'
import { FirstCall } from '../first-call/first-call.tsx'
import { CreateDialog } from './create.tsx'
import { KeyDrawer } from './detail.tsx'
import { ManyKeys } from './many.tsx'
import { CapBar, type Created, KeyStatus } from './status.tsx'
import type { Key } from './values.ts'

const route = getRouteApi('/signed-in/keys')

/** Returns what each key spent in the last thirty days, and the last day of its use; a key without calls is absent. */
function useLastDays() {
  const { account_id, role } = useAccount()
  const input = { account_id, by: 'key', period: '30d', timezone: readZoneName() } as const
  const { data } = useGet('showUsage', input, { enabled: role !== 'member', refetchInterval: SUMS_MS })
  return {
    lastUsed: new Map(data?.by_day.map(({ group, date }) => [group, date])),
    spent: new Map(data?.groups.map(({ id, cost }) => [id, cost])),
  }
}

interface KeyActionsProps {
  readonly item: Key
  readonly mayChange: boolean
  readonly mayReveal: boolean
  onRevealed(key: Created): void
}

function KeyActions({ item, mayChange, mayReveal, onRevealed }: KeyActionsProps) {
  const { id, name, enabled, revealable } = item
  const quiet = { kind: 'quiet', changes: ['/keys'] } as const
  return (
    <span className="flex gap-1">
      {revealable && mayReveal && (
        <Action kind="quiet" run={() => request('revealKey', { id })} onDone={onRevealed}>
          {t('Reveal')}
        </Action>
      )}
      {mayChange && (
        <>
          <Action
            {...quiet}
            confirm={
              enabled
                ? {
                    title: t('Switch off {name}', { name }),
                    description: t(
                      'Programs that use this key will be refused until you switch it on again.',
                    ),
                    submit: t('Switch off'),
                  }
                : undefined
            }
            done={t('Key changed')}
            run={() => request('updateKey', { id, enabled: !enabled })}
          >
            {enabled ? t('Switch off') : t('Switch on')}
          </Action>
          <Action
            {...quiet}
            confirm={{
              title: t('Revoke {name}', { name }),
              description: t('Programs that use this key will be refused. This cannot be undone.'),
              name: readTyped('revokeKey', { name }),
              submit: t('Revoke'),
            }}
            done={t('Key revoked')}
            run={() => request('revokeKey', { id })}
          >
            {t('Revoke')}
          </Action>
        </>
      )}
    </span>
  )
}

/** Shows the secret of a key when it is created, revealed or rotated. */
export const SecretDialog = ({ shown, onClose }: { readonly shown: Created; onClose(): void }) => (
  <Dialog
    isWide
    title={shown.name}
    description={t(
      "Anyone who has this key can spend from the account's wallet. Store it with your program's other secrets.",
    )}
    onClose={onClose}
  >
    <div className="flex flex-col gap-3">
      <CodeBlock isWrapped label={t('Key')} code={shown.key} />
      <FirstCall
        accountId={shown.account_id}
        secret={{ id: shown.id, key: shown.key, models: shown.allowed_models }}
      />
      <Done onClose={onClose} />
    </div>
  </Dialog>
)

export function Keys() {
  const { account_id: accountId, role } = useAccount()
  const list = useList('listKeys', { account_id: accountId })
  const [shown, setShown] = useState<Created | null>(null)
  const mayChange = role === 'owner' || role === 'admin'
  const { user: self } = useSession()
  /** The secret of a member's key is that member's, and the owners'. */
  const maySeeSecret = ({ member_id: holder }: Key) =>
    role === 'owner' || (holder === null ? role === 'admin' : holder === self.account_id)
  const { lastUsed, spent } = useLastDays()
  const { create, key: open } = route.useSearch()
  const change = useChangeSearch()
  const columns: Column<Key>[] = [
    { name: t('Name'), cell: ({ id, name }) => <OpenLink search={{ key: id }}>{name}</OpenLink> },
    { name: t('Key'), cell: ({ key_prefix }) => <Code>{key_prefix}…</Code> },
    { name: t('Status'), cell: (key) => <KeyStatus item={key} /> },
    {
      name: t('Models'),
      from: 'wide',
      cell: ({ allowed_models: models }) =>
        models === null ? t('All') : <span title={models.join(', ')}>{models.length}</span>,
    },
    {
      name: t('Spent, 30 days'),
      isNumber: true,
      cell: ({ id }) => <Money amount={spent.get(id) ?? '0'} />,
    },
    {
      name: t('Spent of cap'),
      from: 'wide',
      isNumber: true,
      cell: ({ spent, spend_cap: cap }) => (cap === null ? NONE : <CapBar spent={spent ?? '0'} cap={cap} />),
    },
    { name: t('Last used'), from: 'wide', cell: ({ id }) => lastUsed.get(id) ?? NONE },
    { name: t('Created'), isTime: true, from: 'wide', cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: t('Actions'),
      cell: (key) =>
        key.revoked_at === null && (
          <KeyActions item={key} mayChange={mayChange} mayReveal={maySeeSecret(key)} onRevealed={setShown} />
        ),
    },
  ]
  return (
    <>
      <PageHeader
        title={t('Keys')}
        description={t('All keys of an account spend from the same wallet.')}
        actions={
          mayChange && (
            <Button kind="primary" onClick={() => change({ create: true })}>
              {t('Create a key')}
            </Button>
          )
        }
      />
      <ListPanel
        caption={t('Keys')}
        list={list}
        columns={columns}
        empty={{
          title: t('This account has no keys yet.'),
          icon: KeyRound,
          docs: 'getting-started.md',
          action: mayChange && (
            <Button onClick={() => change({ create: true })}>{t('Create your first key')}</Button>
          ),
        }}
        selects={{
          name: ({ name }) => name,
          actions: (rows, onDone) => <ManyKeys rows={rows} mayChange={mayChange} onDone={onDone} />,
        }}
      />
      <KeyDrawer
        id={open}
        mayChange={mayChange}
        onRotated={setShown}
        onClose={() => change({ key: undefined })}
      />
      {create && (
        <CreateDialog
          accountId={accountId}
          onClose={() => change({ create: undefined })}
          onCreated={setShown}
        />
      )}
      {shown && <SecretDialog shown={shown} onClose={() => setShown(null)} />}
    </>
  )
}
