/** Channels of the installation, for operators: their health, and whether they take calls. */

import { getRouteApi } from '@tanstack/react-router'
import { Waypoints } from 'lucide-react'
import { useState } from 'react'
import { type AnswerOf, request } from '../api/client.ts'
import { useGet } from '../api/read.ts'
import { useSession } from '../api/session.ts'
import { printNumber, printTime } from '../format.ts'
import { t } from '../i18n.ts'
import { Action } from '../ui/dialog.tsx'
import { Badge, PageHeader } from '../ui/states.tsx'
import { type Column, ListPanel } from '../ui/table.tsx'
import { Money, NONE, TextLink } from '../ui/text.tsx'
import { ChannelHolds } from './channel-holds.tsx'

const route = getRouteApi('/signed-in/channels')

type Channel = AnswerOf<'listChannels'>['data'][number]
type Tested = AnswerOf<'testChannel'>
type Costs = AnswerOf<'showInstallationUsage'>['rows'][number]

const PERCENT = 100
const COST_PERIOD = '30d'

function ChannelStatus({ state, configured, drained }: Channel) {
  if (!configured) return <Badge>{t('No key configured')}</Badge>
  if (state === 'paused') return <Badge tone="warn">{t('Paused')}</Badge>
  if (state === 'draining') return <Badge tone="warn">{drained ? t('Drained') : t('Draining')}</Badge>
  return <Badge tone="good">{t('Active')}</Badge>
}

function Breaker({ breaker, last_error }: Channel) {
  if (breaker === null || breaker === 'closed') return null
  return (
    <span title={last_error === null ? '' : `${last_error.code}: ${last_error.message}`}>
      <Badge tone="bad">{breaker === 'open' ? t('Open circuit') : t('Half-open circuit')}</Badge>
    </span>
  )
}

/** The order among channels of the same priority. */
const STRATEGY_NAMES = {
  priority: () => t('By weight'),
  least_latency: () => t('Fastest first'),
  least_cost: () => t('Cheapest first'),
}

function Keys({ keys }: Channel) {
  if (keys.length === 0) return <span className="text-quiet">{t('At most one')}</span>
  return (
    <ul>
      {keys.map(({ position, tail, resting_until: until }) => (
        <li key={position} className="whitespace-nowrap">
          {position}: <code>{tail}</code>{' '}
          {until !== null && (
            <Badge tone="warn">{t('paused until {time}', { time: printTime(until) })}</Badge>
          )}
        </li>
      ))}
    </ul>
  )
}

function CostAndMargin({ costs }: { readonly costs: Costs | undefined }) {
  if (costs === undefined || costs.upstream_cost === null || costs.margin === null) return NONE
  return (
    <>
      <Money amount={costs.upstream_cost} /> / <Money amount={costs.margin} />
    </>
  )
}

/** Returns the share of the prompt tokens that the provider read from its cache. */
const printCacheHits = (costs: Costs | undefined): string =>
  costs === undefined || costs.input_tokens === 0
    ? NONE
    : `${((costs.cached_tokens / costs.input_tokens) * PERCENT).toFixed(1)}%`

const printMs = (value: number | null): string => (value === null ? NONE : `${Math.round(value)} ms`)

/** Returns the columns with the settings of a channel. */
const listPropertyColumns = (costs: ReadonlyMap<string | undefined, Costs>): Column<Channel>[] => [
  {
    name: t('Channel'),
    cell: ({ id, provider, protocol }) => (
      <>
        <span className="font-medium">{id}</span>
        <br />
        <span className="text-quiet text-sm">
          {provider !== null && `${provider} · `}
          {protocol}
        </span>
      </>
    ),
  },
  {
    name: t('Models'),
    isNumber: true,
    cell: ({ models }) => <span title={Object.keys(models).join(', ')}>{Object.keys(models).length}</span>,
  },
  { name: t('Keys'), from: 'wide', cell: (channel) => <Keys {...channel} /> },
  {
    name: t('Selection'),
    from: 'wide',
    cell: ({ strategies }) => strategies.map((strategy) => STRATEGY_NAMES[strategy]()).join(', '),
  },
  {
    name: t('Cost / margin, 30 days'),
    from: 'wide',
    isNumber: true,
    cell: ({ id }) => <CostAndMargin costs={costs.get(id)} />,
  },
  {
    name: t('Cache hits, 30 days'),
    isNumber: true,
    from: 'wide',
    cell: ({ id }) => printCacheHits(costs.get(id)),
  },
]

/** Returns the columns with the health of a channel. */
const listHealthColumns = (): Column<Channel>[] => [
  {
    name: t('Status'),
    cell: (channel) => (
      <span className="flex flex-col items-start gap-1">
        <ChannelStatus {...channel} />
        <Breaker {...channel} />
      </span>
    ),
  },
  { name: t('In progress'), isNumber: true, cell: ({ in_flight, open_tasks }) => in_flight + open_tasks },
  {
    name: t('Failed in 5 min'),
    isNumber: true,
    cell: ({ error_rate, recent_attempts }) =>
      error_rate === null
        ? NONE
        : t('{percent}% of {count}', {
            percent: (error_rate * PERCENT).toFixed(1),
            count: printNumber(recent_attempts),
          }),
  },
  {
    name: t('p50 / p99'),
    isNumber: true,
    cell: ({ latency_p50_ms, latency_p99_ms }) => (
      <span className="flex flex-col">
        <span>{printMs(latency_p50_ms)}</span>
        <span className="text-quiet">{printMs(latency_p99_ms)}</span>
      </span>
    ),
  },
]

interface ChannelActionsProps {
  readonly channel: Channel
  onTested(tested: Tested): void
}

function ChannelActions({ channel: { id, state }, onTested }: ChannelActionsProps) {
  return (
    <span className="flex gap-1">
      <Action kind="quiet" run={() => request('testChannel', { id })} onDone={onTested}>
        {t('Test')}
      </Action>
      <ChannelHolds id={id} state={state} />
    </span>
  )
}

const TestResult = ({ tested }: { readonly tested: Tested }) => (
  <div
    role="status"
    className={`mb-4 rounded-md border p-3 ${tested.ok ? 'border-good bg-good-wash' : 'border-bad bg-bad-wash'}`}
  >
    <p className="font-medium">
      {tested.ok
        ? t('{id} answered in {ms} ms', { id: tested.id, ms: Math.round(tested.latency_ms) })
        : t('{id} failed: {error}', { id: tested.id, error: tested.error ?? String(tested.status ?? '') })}
    </p>
    <p className="text-sm">
      {tested.upstream_model}: {tested.input_tokens} → {tested.output_tokens}, <Money amount={tested.cost} />{' '}
      {t('credits')}
      {tested.upstream_cost !== null && (
        <>
          {' · '}
          {t('Provider cost')} <Money amount={tested.upstream_cost} />
        </>
      )}
    </p>
  </div>
)

export function Channels() {
  const mayChange = useSession().user.installation_role === 'operator'
  const list = useGet('listChannels', {})
  const usage = useGet('showInstallationUsage', { by: 'channel', period: COST_PERIOD })
  const costs = new Map(usage.data?.rows.map((row) => [row.channel_id, row]))
  const [tested, setTested] = useState<Tested | null>(null)
  const { channel: only } = route.useSearch()
  const columns: Column<Channel>[] = [
    ...listPropertyColumns(costs),
    ...listHealthColumns(),
    {
      name: t('Actions'),
      cell: (channel) =>
        mayChange && channel.configured && <ChannelActions channel={channel} onTested={setTested} />,
    },
  ]
  return (
    <>
      <PageHeader
        title={t('Channels')}
        description={t(
          'The routes to providers: their health across all processes, and whether they take calls.',
        )}
      />
      {tested && <TestResult tested={tested} />}
      <ListPanel
        caption={t('Channels')}
        list={list}
        rows={list.data?.data.filter(({ id }) => only === undefined || id === only)}
        foot={
          only !== undefined && (
            <TextLink to="/channels" search={{ channel: undefined }}>
              {t('All channels')}
            </TextLink>
          )
        }
        columns={columns}
        empty={{ title: t('The configuration has no channels.'), icon: Waypoints, docs: 'providers.md' }}
      />
    </>
  )
}
