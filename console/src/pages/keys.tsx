/** Keys of an account: listed, created, revealed, switched off, revoked. */
import { useLingui } from '@lingui/react'
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type {
  createKey,
  listKeys,
  revealKey,
  revokeKey,
  updateKey,
} from '../../../schemas/management/accounts/keys.ts'
import type { AnswerOf } from '../../../schemas/management/operation.ts'
import { get, request } from '../api/client.ts'
import { useAccount } from '../api/session.ts'
import { t } from '../i18n.ts'
import { Button } from '../ui/button.tsx'
import { Actions, ConfirmByTyping, Dialog } from '../ui/dialog.tsx'
import { CheckField, Field } from '../ui/field.tsx'
import { Badge, EmptyState, ErrorState, PageHeader, Panel, Skeleton } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { CodeBlock, Money, Time } from '../ui/text.tsx'

type Key = AnswerOf<typeof listKeys>['data'][number]
type Created = AnswerOf<typeof createKey>

const route = getRouteApi('/signed-in/keys')

function stateOf({ revoked_at, enabled, expires_at }: Key) {
  if (revoked_at !== null) return <Badge tone="bad">{t('Revoked')}</Badge>
  if (expires_at !== null && Date.parse(expires_at) <= Date.now())
    return <Badge tone="bad">{t('Expired')}</Badge>
  return enabled ? <Badge tone="good">{t('Active')}</Badge> : <Badge tone="warn">{t('Off')}</Badge>
}

const snippet = (key: string) =>
  `curl -N ${location.origin}/v1/chat/completions \\
  -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' \\
  -d '{"model":"MODEL","stream":true,"messages":[{"role":"user","content":"Hello!"}]}'`

function CreateDialog({ accountId, onCreated }: { accountId: string; onCreated(key: Created): void }) {
  const { create = false } = route.useSearch()
  const navigate = useNavigate()
  const close = () => void navigate({ to: '.', search: ({ create: _, ...rest }) => rest })
  const [name, setName] = useState('')
  const [expires, setExpires] = useState('')
  const [accountLogs, setAccountLogs] = useState(false)
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const creating = useMutation({
    mutationFn: () =>
      request<typeof createKey>(
        'POST',
        '/keys',
        {
          account_id: accountId,
          name,
          account_logs: accountLogs,
          ...(expires !== '' && { expires_at: new Date(expires).toISOString() }),
        },
        { idempotencyKey },
      ),
    onSuccess: (key) => {
      close()
      onCreated(key)
    },
  })
  return (
    <Dialog title={t('Create a key')} isOpen={create} onClose={close}>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          creating.mutate()
        }}
      >
        <Field
          label={t('Name')}
          hint={t('What uses it, such as a program or a machine.')}
          value={name}
          required
          maxLength={100}
          onChange={(event) => setName(event.target.value)}
        />
        <Field
          label={t('Expires')}
          hint={t('Refused from then on. Empty: never.')}
          type="datetime-local"
          value={expires}
          onChange={(event) => setExpires(event.target.value)}
        />
        <CheckField
          label={t('May read the logs of the whole account')}
          checked={accountLogs}
          onChange={(event) => setAccountLogs(event.target.checked)}
        />
        {creating.error && <ErrorState error={creating.error} />}
        <Actions>
          <Button onClick={close}>{t('Cancel')}</Button>
          <Button type="submit" kind="primary" isBusy={creating.isPending}>
            {t('Create')}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}

const SecretDialog = ({ shown, onClose }: { shown: Created | null; onClose(): void }) => (
  <Dialog
    title={shown?.name ?? ''}
    description={t(
      'Anyone who has this key spends from the wallet of the account. Keep it where your program reads its secrets.',
    )}
    isOpen={shown !== null}
    onClose={onClose}
  >
    {shown && (
      <div className="flex flex-col gap-3">
        <CodeBlock isWrapped label={t('Key')} code={shown.key} />
        <CodeBlock label="curl" code={snippet(shown.key)} />
        <Actions>
          <Button kind="primary" onClick={onClose}>
            {t('Done')}
          </Button>
        </Actions>
      </div>
    )}
  </Dialog>
)

export function Keys() {
  useLingui()
  const { account_id: accountId, role } = useAccount()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const queryKey = ['keys', accountId]
  const changed = () => queries.invalidateQueries({ queryKey })
  const list = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) =>
      get<typeof listKeys>(
        '/keys',
        { account_id: accountId, ...(pageParam && { cursor: pageParam }) },
        signal,
      ),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor }) => next_cursor,
  })
  const [shown, setShown] = useState<Created | null>(null)
  const [revoking, setRevoking] = useState<Key | null>(null)
  const reveal = useMutation({
    mutationFn: ({ id }: Key) => request<typeof revealKey>('POST', '/keys/{id}/reveal', { id }),
    onSuccess: setShown,
  })
  const toggle = useMutation({
    mutationFn: ({ id, enabled }: Key) =>
      request<typeof updateKey>('PATCH', '/keys/{id}', { id, enabled: !enabled }),
    onSuccess: changed,
  })
  const revoke = useMutation({
    mutationFn: ({ id }: Key) => request<typeof revokeKey>('POST', '/keys/{id}/revoke', { id }),
    onSuccess: async () => {
      setRevoking(null)
      await changed()
    },
  })
  const mayChange = role === 'owner' || role === 'admin'
  const columns: Column<Key>[] = [
    { name: t('Name'), cell: ({ name }) => <span className="font-medium">{name}</span> },
    { name: t('Key'), cell: ({ key_prefix }) => <code className="font-mono text-xs">{key_prefix}…</code> },
    { name: t('State'), cell: stateOf },
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
          <>
            <Money amount={spent ?? '0'} /> / <Money amount={spend_cap} />
          </>
        ),
    },
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
            <Button
              kind="quiet"
              onClick={() => {
                revoke.reset()
                setRevoking(key)
              }}
            >
              {t('Revoke')}
            </Button>
          </span>
        ),
    },
  ]
  const openCreate = () => void navigate({ to: '.', search: (all) => ({ ...all, create: true }) })
  const failed = reveal.error ?? toggle.error
  const keys = list.data?.pages.flatMap(({ data }) => data) ?? []
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
      <Panel>
        {failed && <ErrorState error={failed} />}
        {list.isPending && <Skeleton />}
        {list.error && <ErrorState error={list.error} onRetry={() => void list.refetch()} />}
        {list.data && keys.length === 0 && (
          <EmptyState title={t('This account has no keys yet.')}>
            <CodeBlock label="curl" code={snippet('KEY')} />
          </EmptyState>
        )}
        {keys.length > 0 && (
          <Table caption={t('Keys')} columns={columns} rows={keys} keyOf={({ id }) => id} />
        )}
        {list.hasNextPage && (
          <div className="border-line border-t p-3 text-center">
            <Button isBusy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
              {t('Show more')}
            </Button>
          </div>
        )}
      </Panel>
      <CreateDialog
        accountId={accountId}
        onCreated={(key) => {
          setShown(key)
          void changed()
        }}
      />
      <SecretDialog shown={shown} onClose={() => setShown(null)} />
      {revoking && (
        <ConfirmByTyping
          title={t('Revoke {name}', { name: revoking.name })}
          description={t('Programs that use this key are refused from now on. This cannot be undone.')}
          name={revoking.name}
          act={t('Revoke')}
          isOpen
          isBusy={revoke.isPending}
          error={revoke.error}
          onClose={() => setRevoking(null)}
          onConfirm={() => revoke.mutate(revoking)}
        />
      )}
    </>
  )
}
