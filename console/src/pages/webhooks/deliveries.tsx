/** The deliveries of the last thirty days. */
import { type AnswerOf, request } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { printTime, toZoneRange } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Action } from '../../ui/dialog.tsx'
import { OpenLink } from '../../ui/open-link.tsx'
import { ManyAction } from '../../ui/selection.tsx'
import { listNames, StatusBadge, type Statuses } from '../../ui/states.tsx'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { NONE, Time } from '../../ui/text.tsx'
import { Filter, type Period, PeriodFilter } from '../filters.tsx'

export type Endpoint = AnswerOf<'listWebhooks'>['data'][number]

type Delivery = AnswerOf<'listDeliveries'>['data'][number]

/** The paths of the lists of endpoints and deliveries. */
export const WEBHOOKS = ['/webhooks', '/webhook-deliveries'] as const
const DAY_MS = 86_400_000

export const describeStatuses = (): Statuses<Delivery['state']> => ({
  waiting: ['warn', t('Waiting')],
  delivered: ['good', t('Delivered')],
  failed: ['bad', t('Failed')],
})

const readName = ({ type, created_at }: Delivery): string => `${type}, ${printTime(created_at)}`

interface DeliveriesProps {
  readonly accountId: string
  readonly endpoints: readonly Endpoint[]
  readonly endpoint: string | undefined
  readonly state: string | undefined
  readonly period: Period
  readonly mayChange: boolean
}

export function Deliveries({ accountId, endpoints, endpoint, state, period, mayChange }: DeliveriesProps) {
  const filters = { account_id: accountId, endpoint_id: endpoint, state, ...toZoneRange(period) }
  const list = useList('listDeliveries', filters as never)
  const statuses = describeStatuses()
  const columns: Column<Delivery>[] = [
    { name: t('Time'), isTime: true, cell: ({ created_at }) => <Time at={created_at} /> },
    { name: t('Event'), cell: ({ id, type }) => <OpenLink search={{ delivery: id }}>{type}</OpenLink> },
    { name: t('Status'), cell: ({ state: now }) => <StatusBadge statuses={statuses} status={now} /> },
    { name: t('Answer'), cell: ({ last_status, last_error }) => last_status ?? last_error ?? NONE },
    { name: t('Attempts'), isNumber: true, cell: ({ attempts }) => attempts },
    {
      name: t('Next attempt'),
      from: 'wide',
      isTime: true,
      cell: ({ next_at, attempts }) => <Time at={attempts > 0 ? next_at : null} />,
    },
    {
      name: t('Address'),
      from: 'wide',
      cell: ({ url }) => <span className="break-all font-mono text-xs">{url}</span>,
    },
  ]
  return (
    <div>
      <div className="mb-4 flex flex-wrap items-end gap-3">
        <PeriodFilter value={period} />
        <div className="w-64 max-w-full">
          <Filter
            name="endpoint"
            label={t('Endpoint')}
            value={endpoint}
            options={endpoints.map(({ id, url, description }) => [id, description || url])}
          />
        </div>
        <div className="w-40">
          <Filter name="state" label={t('Delivery status')} value={state} options={listNames(statuses)} />
        </div>
        {mayChange && endpoint && (
          <Action
            done={t('Failed deliveries are being sent again')}
            changes={WEBHOOKS}
            run={() => {
              const since = new Date(Date.now() - 30 * DAY_MS).toISOString()
              return request('replayFailed', { id: endpoint, since })
            }}
          >
            {t('Resend all failed')}
          </Action>
        )}
      </div>
      <ListPanel
        title={t('Deliveries')}
        list={list}
        columns={columns}
        empty={t('No deliveries match.')}
        selects={
          mayChange
            ? {
                name: readName,
                actions: (rows, onDone) => (
                  <ManyAction
                    rows={rows}
                    name={readName}
                    done={t('The events are being sent again')}
                    changes={WEBHOOKS}
                    run={({ id }) => request('replayDelivery', { id })}
                    onDone={onDone}
                  >
                    {t('Resend')}
                  </ManyAction>
                ),
              }
            : undefined
        }
      />
    </div>
  )
}
