/** Keys of an account: listed, created, revealed, switched off, revoked. */
import { useMutation } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmButton } from '../../ui/dialog.tsx'
import { OpenLink } from '../../ui/open-link.tsx'
import { EmptyState, ErrorState, PageHeader } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { CodeBlock, Time } from '../../ui/text.tsx'
import { CreateDialog } from './create.tsx'
import { KeyDrawer } from './detail.tsx'
import { useLastUsed } from './last-used.ts'
import { SecretDialog, snippet } from './secret-dialog.tsx'
import { CapBar, type Created, KeyState } from './state.tsx'
import type { Key } from './texts.ts'

const route = getRouteApi('/signed-in/keys')

export function Keys() {
  const { account_id: accountId, role } = useAccount()
  const navigate = useNavigate()
  const list = useList('listKeys', { account_id: accountId })
  const [shown, setShown] = useState<Created | null>(null)
  const reveal = useMutation({
    mutationFn: ({ id }: Key) => request('revealKey', { id }),
    onSuccess: setShown,
  })
  const toggle = useMutation({
    meta: { done: t('Key changed'), changes: ['/keys'] },
    mutationFn: ({ id, enabled }: Key) => request('updateKey', { id, enabled: !enabled }),
  })
  const mayChange = role === 'owner' || role === 'admin'
  const lastUsed = useLastUsed()
  const columns: Column<Key>[] = [
    { name: t('Name'), cell: ({ id, name }) => <OpenLink search={{ key: id }}>{name}</OpenLink> },
    { name: t('Key'), cell: ({ key_prefix }) => <code className="font-mono text-xs">{key_prefix}…</code> },
    { name: t('State'), cell: (key) => <KeyState item={key} /> },
    {
      name: t('Models'),
      cell: ({ allowed_models }) =>
        allowed_models === null ? (
          t('All')
        ) : (
          <span title={allowed_models.join(', ')}>{allowed_models.length}</span>
        ),
    },
    {
      name: t('Spent of cap'),
      isNumber: true,
      cell: ({ spent, spend_cap }) =>
        spend_cap === null ? (
          <span className="text-quiet">–</span>
        ) : (
          <CapBar spent={spent ?? '0'} cap={spend_cap} />
        ),
    },
    { name: t('Last used'), cell: ({ id }) => lastUsed.get(id) ?? <span className="text-quiet">–</span> },
    { name: t('Created'), cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: t('Actions'),
      cell: (key) =>
        mayChange &&
        key.revoked_at === null && (
          <span className="flex gap-1">
            {key.revealable && (
              <Button kind="quiet" onClick={() => reveal.mutate(key)}>
                {t('Reveal')}
              </Button>
            )}
            <Button kind="quiet" onClick={() => toggle.mutate(key)}>
              {key.enabled ? t('Switch off') : t('Switch on')}
            </Button>
            <ConfirmButton
              title={t('Revoke {name}', { name: key.name })}
              description={t('Programs that use this key are refused from now on. This cannot be undone.')}
              name={key.name}
              act={t('Revoke')}
              meta={{ done: t('Key revoked'), changes: ['/keys'] }}
              onConfirm={() => request('revokeKey', { id: key.id })}
            />
          </span>
        ),
    },
  ]
  const { create = false, key: open } = route.useSearch()
  const change = useChangeSearch()
  const openCreate = () => void navigate({ to: '.', search: (all) => ({ ...all, create: true }) })
  return (
    <>
      <PageHeader
        title={t('Keys')}
        description={t('Every key of the account spends from the same wallet.')}
        actions={
          mayChange && (
            <Button kind="primary" onClick={openCreate}>
              {t('Create a key')}
            </Button>
          )
        }
      />
      <ErrorState error={reveal.error ?? toggle.error} />
      <ListPanel
        caption={t('Keys')}
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <EmptyState title={t('This account has no keys yet.')}>
            <CodeBlock label="curl" code={snippet('KEY')} />
          </EmptyState>
        }
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
          onClose={() => void navigate({ to: '.', search: ({ create: _, ...rest }) => rest })}
          onCreated={setShown}
        />
      )}
      <SecretDialog shown={shown} onClose={() => setShown(null)} />
    </>
  )
}
