/** Webhook endpoints of an account, or of the installation, and what was delivered to them. */

import { useMutation } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { INSTALLATION } from '../../../../schemas/notifications/event.ts'
import { request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { useAccount, useSession } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmButton, Dialog, Drawer } from '../../ui/dialog.tsx'
import { Done } from '../../ui/form.tsx'
import { Badge, EmptyState, ErrorState, PageHeader } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { CodeBlock, Time } from '../../ui/text.tsx'
import { ScopeField, useIsWhole } from '../scope-field.tsx'
import { CallbackSecret } from './callback-secret.tsx'
import { Deliveries, type Endpoint, WEBHOOKS } from './deliveries.tsx'
import { DeliveryDetail } from './detail.tsx'
import { EndpointDialog } from './form.tsx'

const route = getRouteApi('/signed-in/webhooks')

const VERIFY = `import { Webhook } from 'standardwebhooks'

const event = new Webhook(process.env.TOLLGATE_WEBHOOK_SECRET).verify(rawBody, request.headers)`

function EndpointState({ endpoint }: { readonly endpoint: Endpoint }) {
  if (!endpoint.enabled) return <Badge tone="warn">{t('Off')}</Badge>
  if (endpoint.failing_since === null) return <Badge tone="good">{t('Active')}</Badge>
  return (
    <span className="flex flex-wrap items-center gap-1.5">
      <Badge tone="bad">{t('Failing since')}</Badge> <Time at={endpoint.failing_since} />
    </span>
  )
}

interface SecretDialogProps {
  readonly secret: string | null
  readonly title: string
  readonly description: string
  onClose(): void
}

const SecretDialog = ({ secret, title, description, onClose }: SecretDialogProps) => (
  <Dialog title={title} description={description} isOpen={secret !== null} onClose={onClose}>
    <div className="flex flex-col gap-3">
      <CodeBlock isWrapped label={t('Secret')} code={secret ?? ''} />
      <CodeBlock label="JavaScript" code={VERIFY} />
      <Done onClose={onClose} />
    </div>
  </Dialog>
)

export function Webhooks() {
  const account = useAccount()
  const change = useChangeSearch()
  const { scope, delivery, endpoint: filtered, state } = route.useSearch()
  const isWhole = useIsWhole(scope)
  const accountId = isWhole ? INSTALLATION : account.account_id
  const { user } = useSession()
  const mayChange = isWhole ? user.installation_role === 'operator' : account.role === 'owner'
  const list = useList('listWebhooks', { account_id: accountId })
  const [secret, setSecret] = useState<string | null>(null)
  const [callbackSecret, setCallbackSecret] = useState<string | null>(null)
  const [edited, setEdited] = useState<Endpoint | 'new' | null>(null)
  const test = useMutation({
    meta: { done: t('Test event sent'), changes: WEBHOOKS },
    mutationFn: ({ id }: Endpoint) => request('testWebhook', { id }),
  })
  const [attempt, setAttempt] = useState(() => crypto.randomUUID())
  const rotate = useMutation({
    meta: { changes: WEBHOOKS },
    // Twice at once would end the secret that the receiver has.
    mutationFn: ({ id }: Endpoint) =>
      request('rotateWebhook', { id }, { idempotencyKey: `${attempt}-${id}` }),
    onSuccess: (rotated) => {
      setAttempt(crypto.randomUUID())
      setSecret(rotated.secret)
    },
  })
  const toggle = useMutation({
    meta: { done: t('Endpoint changed'), changes: WEBHOOKS },
    mutationFn: ({ id, enabled }: Endpoint) => request('updateWebhook', { id, enabled: !enabled }),
  })
  const columns: Column<Endpoint>[] = [
    {
      name: t('Address'),
      cell: (endpoint) => (
        <span className="flex flex-col">
          <span className="break-all font-mono text-xs">{endpoint.url}</span>
          {endpoint.description && <span className="text-quiet text-sm">{endpoint.description}</span>}
        </span>
      ),
    },
    {
      name: t('Events'),
      cell: ({ events }) =>
        events === null ? t('All') : <span title={events.join(', ')}>{events.length}</span>,
    },
    { name: t('State'), cell: (endpoint) => <EndpointState endpoint={endpoint} /> },
    { name: t('Created'), cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: t('Actions'),
      cell: (endpoint) =>
        mayChange && (
          <span className="flex gap-1">
            <Button kind="quiet" disabled={!endpoint.enabled} onClick={() => test.mutate(endpoint)}>
              {t('Test')}
            </Button>
            <Button kind="quiet" onClick={() => setEdited(endpoint)}>
              {t('Edit')}
            </Button>
            <Button kind="quiet" isBusy={rotate.isPending} onClick={() => rotate.mutate(endpoint)}>
              {t('Rotate secret')}
            </Button>
            <Button kind="quiet" onClick={() => toggle.mutate(endpoint)}>
              {endpoint.enabled ? t('Switch off') : t('Switch on')}
            </Button>
            <ConfirmButton
              title={t('Delete the endpoint')}
              description={t(
                'Its deliveries are deleted too, those that wait included. This cannot be undone.',
              )}
              name={new URL(endpoint.url).host}
              act={t('Delete')}
              meta={{ done: t('Endpoint deleted'), changes: WEBHOOKS }}
              onConfirm={() => request('deleteWebhook', { id: endpoint.id })}
            />
          </span>
        ),
    },
  ]
  return (
    <>
      <PageHeader
        title={t('Webhooks')}
        description={t('Events are posted to your endpoints, signed, and tried again for a day.')}
        actions={
          mayChange && (
            <Button kind="primary" onClick={() => setEdited('new')}>
              {t('Add an endpoint')}
            </Button>
          )
        }
      />
      <div className="mb-4 max-w-xs">
        <ScopeField value={scope} onChange={(value) => change({ scope: value, endpoint: undefined })} />
      </div>
      <ErrorState error={test.error ?? rotate.error ?? toggle.error} />
      <ListPanel
        title={t('Endpoints')}
        caption={t('Endpoints')}
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <EmptyState title={t('There is no endpoint yet.')}>
            <CodeBlock label="JavaScript" code={VERIFY} />
          </EmptyState>
        }
      />
      {mayChange && !isWhole && (
        <div className="mt-5">
          <CallbackSecret accountId={accountId} onSecret={setCallbackSecret} />
        </div>
      )}
      <div className="mt-5">
        <Deliveries
          accountId={accountId}
          endpoints={list.rows}
          endpoint={filtered}
          state={state}
          mayChange={mayChange}
        />
      </div>
      <Drawer
        title={t('Delivery')}
        isOpen={delivery !== undefined}
        onClose={() => change({ delivery: undefined })}
      >
        {delivery && <DeliveryDetail key={delivery} id={delivery} mayChange={mayChange} />}
      </Drawer>
      {edited && (
        <EndpointDialog
          accountId={accountId}
          endpoint={edited === 'new' ? null : edited}
          onClose={() => setEdited(null)}
          onSaved={(made) => {
            setEdited(null)
            if (made !== null) setSecret(made)
          }}
        />
      )}
      <SecretDialog
        title={t('Secret of the endpoint')}
        description={t('It is shown this once. Your receiver verifies signatures with it.')}
        secret={secret}
        onClose={() => setSecret(null)}
      />
      <SecretDialog
        title={t('Secret of callbacks')}
        description={t('Your receiver verifies signatures with it.')}
        secret={callbackSecret}
        onClose={() => setCallbackSecret(null)}
      />
    </>
  )
}
