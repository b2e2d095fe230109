/** The webhook endpoints of an account or of the installation, and their deliveries. */

import { getRouteApi } from '@tanstack/react-router'
import { Webhook as WebhookIcon } from 'lucide-react'
import { useState } from 'react'
import { INSTALLATION } from '../../../../schemas/notifications/event.ts'
import { readTyped } from '../../../../src/core/confirmation.ts'
import { request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { useAccount, useSession } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Action, Dialog, DialogButton, Drawer } from '../../ui/dialog.tsx'
import { Done } from '../../ui/form.tsx'
import { Badge, PageHeader, Panel } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { CodeBlock, Time } from '../../ui/text.tsx'
import { ScopeFilter, useIsWhole } from '../filters.tsx'
import { Deliveries, type Endpoint, WEBHOOKS } from './deliveries.tsx'
import { DeliveryDetail } from './detail.tsx'
import { EndpointDialog } from './form.tsx'

const route = getRouteApi('/signed-in/webhooks')

const VERIFY = `import { Webhook } from 'standardwebhooks'

const event = new Webhook(process.env.TOLLGATE_WEBHOOK_SECRET).verify(rawBody, request.headers)`

function EndpointStatus({ endpoint: { enabled, failing_since } }: { readonly endpoint: Endpoint }) {
  if (!enabled) return <Badge tone="warn">{t('Off')}</Badge>
  if (failing_since === null) return <Badge tone="good">{t('Active')}</Badge>
  return (
    <span className="flex flex-wrap items-center gap-1.5">
      <Badge tone="bad">{t('Failing since')}</Badge> <Time at={failing_since} />
    </span>
  )
}

interface Secret {
  readonly of: 'endpoint' | 'callbacks'
  readonly secret: string
}

function SecretDialog({ of, secret, onClose }: Secret & { onClose(): void }) {
  const isOfEndpoint = of === 'endpoint'
  return (
    <Dialog
      title={isOfEndpoint ? t('Secret of the endpoint') : t('Secret for callbacks')}
      description={
        isOfEndpoint
          ? t('It is shown only once. Your receiver uses it to verify signatures.')
          : t('Your receiver uses it to verify signatures.')
      }
      onClose={onClose}
    >
      <div className="flex flex-col gap-3">
        <CodeBlock isWrapped label={t('Secret')} code={secret} />
        <CodeBlock label="JavaScript" code={VERIFY} />
        <Done onClose={onClose} />
      </div>
    </Dialog>
  )
}

interface SecretProps {
  readonly accountId: string
  onSecret(secret: string): void
}

function EndpointActions({ endpoint, accountId, onSecret }: SecretProps & { readonly endpoint: Endpoint }) {
  const { id, url, enabled } = endpoint
  const quiet = { kind: 'quiet', changes: WEBHOOKS } as const
  return (
    <span className="flex gap-1">
      <Action
        {...quiet}
        disabled={!enabled}
        done={t('Test event sent')}
        run={() => request('testWebhook', { id })}
      >
        {t('Test')}
      </Action>
      <DialogButton
        kind="quiet"
        dialog={(onClose) => (
          <EndpointDialog accountId={accountId} endpoint={endpoint} onClose={onClose} onSecret={onSecret} />
        )}
      >
        {t('Edit')}
      </DialogButton>
      <Action
        {...quiet}
        // A second rotation would end the secret that the receiver uses.
        run={(idempotencyKey) => request('rotateWebhook', { id }, { idempotencyKey })}
        onDone={({ secret }) => onSecret(secret)}
      >
        {t('Rotate secret')}
      </Action>
      <Action
        {...quiet}
        done={t('Endpoint changed')}
        run={() => request('updateWebhook', { id, enabled: !enabled })}
      >
        {enabled ? t('Switch off') : t('Switch on')}
      </Action>
      <Action
        {...quiet}
        confirm={{
          title: t('Delete the endpoint'),
          description: t(
            'This also deletes its deliveries, including those that are waiting. It cannot be undone.',
          ),
          name: readTyped('deleteWebhook', new URL(url)),
          submit: t('Delete'),
        }}
        done={t('Endpoint deleted')}
        run={() => request('deleteWebhook', { id })}
      >
        {t('Delete')}
      </Action>
    </span>
  )
}

/** The secret that signs the callbacks of an account's tasks. */
const CallbackSecret = ({ accountId, onSecret }: SecretProps) => (
  <Panel title={t('Callbacks of tasks')}>
    <div className="flex flex-col gap-3 p-4">
      <p className="text-quiet">
        {t('One secret signs everything that is posted to the callback_url of a task of this account.')}
      </p>
      <div className="flex flex-wrap gap-2">
        <Action
          run={() => request('revealCallbackSecret', { account_id: accountId })}
          onDone={({ secret }) => onSecret(secret)}
        >
          {t('Show the secret')}
        </Action>
        <Action
          done={t('Secret rotated: callbacks are signed with the old one as well for 24 hours')}
          run={(idempotencyKey) =>
            request('rotateCallbackSecret', { account_id: accountId }, { idempotencyKey })
          }
          onDone={({ secret }) => onSecret(secret)}
        >
          {t('Rotate secret')}
        </Action>
      </div>
    </div>
  </Panel>
)

export function Webhooks() {
  const account = useAccount()
  const change = useChangeSearch()
  const { scope, delivery, endpoint: filtered, state, account: _, ...period } = route.useSearch()
  const isWhole = useIsWhole(scope)
  const accountId = isWhole ? INSTALLATION : account.account_id
  const { user } = useSession()
  const mayChange = isWhole ? user.installation_role === 'operator' : account.role === 'owner'
  const list = useList('listWebhooks', { account_id: accountId })
  const [shown, setShown] = useState<Secret | null>(null)
  const showOfEndpoint = (secret: string) => setShown({ of: 'endpoint', secret })
  const columns: Column<Endpoint>[] = [
    {
      name: t('Address'),
      cell: ({ url, description }) => (
        <span className="flex flex-col">
          <span className="break-all font-mono text-xs">{url}</span>
          {description && <span className="text-quiet text-sm">{description}</span>}
        </span>
      ),
    },
    {
      name: t('Events'),
      cell: ({ events }) =>
        events === null ? t('All') : <span title={events.join(', ')}>{events.length}</span>,
    },
    { name: t('Status'), cell: (endpoint) => <EndpointStatus endpoint={endpoint} /> },
    { name: t('Created'), isTime: true, cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: t('Actions'),
      cell: (endpoint) =>
        mayChange && <EndpointActions endpoint={endpoint} accountId={accountId} onSecret={showOfEndpoint} />,
    },
  ]
  const add = (label: string, kind?: 'primary') =>
    mayChange && (
      <DialogButton
        kind={kind}
        dialog={(onClose) => (
          <EndpointDialog accountId={accountId} endpoint={null} onClose={onClose} onSecret={showOfEndpoint} />
        )}
      >
        {label}
      </DialogButton>
    )
  return (
    <>
      <PageHeader
        title={t('Webhooks')}
        description={t('Events are signed and posted to your endpoints, with retries for a day.')}
        actions={add(t('Add an endpoint'), 'primary')}
      />
      <div className="mb-4 max-w-xs">
        <ScopeFilter value={scope} clears={['endpoint']} />
      </div>
      <div className="flex flex-col gap-5">
        <ListPanel
          title={t('Endpoints')}
          list={list}
          columns={columns}
          empty={{
            title: t('There are no endpoints yet.'),
            icon: WebhookIcon,
            docs: 'notifications.md',
            action: add(t('Add your first endpoint')),
          }}
        >
          <CodeBlock label="JavaScript" code={VERIFY} />
        </ListPanel>
        {mayChange && !isWhole && (
          <CallbackSecret
            accountId={accountId}
            onSecret={(secret) => setShown({ of: 'callbacks', secret })}
          />
        )}
        <Deliveries
          accountId={accountId}
          endpoints={list.rows}
          endpoint={filtered}
          period={period}
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
      {shown && <SecretDialog {...shown} onClose={() => setShown(null)} />}
    </>
  )
}
