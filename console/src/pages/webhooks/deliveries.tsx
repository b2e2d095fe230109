/** What was delivered in the last thirty days, and what failed. */

import { useMutation } from '@tanstack/react-query'
import { type AnswerOf, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { SelectField } from '../../ui/form.tsx'
import { OpenLink } from '../../ui/open-link.tsx'
import { Badge, EmptyState, ErrorState } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'

export type Endpoint = AnswerOf<'listWebhooks'>['data'][number]

type Delivery = AnswerOf<'listDeliveries'>['data'][number]

/** Where endpoints and deliveries are read. */
export const WEBHOOKS = ['/webhooks', '/webhook-deliveries'] as const
const DAY_MS = 86_400_000

const stateNames = () => ({ waiting: t('Waiting'), delivered: t('Delivered'), failed: t('Failed') })
const TONES = { waiting: 'warn', delivered: 'good', failed: 'bad' } as const

export const DeliveryState = ({ state }: { readonly state: Delivery['state'] }) => (
  <Badge tone={TONES[state]}>{stateNames()[state]}</Badge>
)

interface DeliveriesProps {
  readonly accountId: string
  readonly endpoints: readonly Endpoint[]
  readonly endpoint: string | undefined
  readonly state: string | undefined
  readonly mayChange: boolean
}

export function Deliveries({ accountId, endpoints, endpoint, state, mayChange }: DeliveriesProps) {
  const change = useChangeSearch()
  const filters = { account_id: accountId, endpoint_id: endpoint, state }
  const list = useList('listDeliveries', filters as never)
  const replay = useMutation({
    meta: { done: t('Failed deliveries are sent again'), changes: WEBHOOKS },
    mutationFn: (id: string) =>
      request('replayFailed', { id, since: new Date(Date.now() - 30 * DAY_MS).toISOString() }),
  })
  const columns: Column<Delivery>[] = [
    { name: t('Time'), cell: ({ created_at }) => <Time at={created_at} /> },
    { name: t('Event'), cell: ({ id, type }) => <OpenLink search={{ delivery: id }}>{type}</OpenLink> },
    { name: t('State'), cell: ({ state: now }) => <DeliveryState state={now} /> },
    { name: t('Answer'), cell: ({ last_status, last_error }) => last_status ?? last_error ?? '–' },
    { name: t('Attempts'), isNumber: true, cell: ({ attempts }) => attempts },
    {
      name: t('Next attempt'),
      cell: ({ next_at, attempts }) => (next_at !== null && attempts > 0 ? <Time at={next_at} /> : '–'),
    },
    { name: t('Address'), cell: ({ url }) => <span className="break-all font-mono text-xs">{url}</span> },
  ]
  return (
    <>
      <div className="mb-4 flex flex-wrap items-end gap-3">
        <div className="w-64 max-w-full">
          <SelectField
            label={t('Endpoint')}
            value={endpoint ?? ''}
            onText={(text) => change({ endpoint: text })}
            options={[
              ['', t('All')],
              ...endpoints.map(({ id, url, description }) => [id, description || url] as const),
            ]}
          />
        </div>
        <div className="w-40">
          <SelectField
            label={t('State of the delivery')}
            value={state ?? ''}
            onText={(text) => change({ state: text })}
            options={[['', t('All')], ...Object.entries(stateNames())]}
          />
        </div>
        <Button isBusy={list.isRefetching} onClick={() => void list.refetch()}>
          {t('Refresh')}
        </Button>
        {mayChange && endpoint && (
          <Button isBusy={replay.isPending} onClick={() => replay.mutate(endpoint)}>
            {t('Send all failed again')}
          </Button>
        )}
      </div>
      <ErrorState error={replay.error} />
      <ListPanel
        title={t('Deliveries')}
        caption={t('Deliveries')}
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        empty={<EmptyState title={t('No delivery matches.')} />}
      />
    </>
  )
}
