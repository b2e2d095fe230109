/** Channels of the installation, for operators: how they do, and whether they take calls. */
import { useMutation } from '@tanstack/react-query'
import { type AnswerOf, request } from '../api/client.ts'
import { useGet } from '../api/read.ts'
import { useSession } from '../api/session.ts'
import { t } from '../i18n.ts'
import { Button } from '../ui/button.tsx'
import { ConfirmButton } from '../ui/dialog.tsx'
import { Badge, EmptyState, ErrorState, PageHeader, Panel, QueryState } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { Money } from '../ui/text.tsx'

type Channel = AnswerOf<'listChannels'>['data'][number]
type Tested = AnswerOf<'testChannel'>

const REFRESH_MS = 5_000
const PERCENT = 100
const MARGIN_PERIOD = '30d'

function State({ state, configured, drained }: Channel) {
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

/** Order among equals; the usual one is left out. */
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
            <Badge tone="warn">
              {t('rests until {time}', { time: new Date(until).toLocaleTimeString() })}
            </Badge>
          )}
        </li>
      ))}
    </ul>
  )
}

interface CostAndMarginProps {
  readonly upstream_cost?: string | null
  readonly margin?: string | null
}

function CostAndMargin({ upstream_cost = null, margin = null }: CostAndMarginProps) {
  if (upstream_cost === null || margin === null) return <span className="text-quiet">–</span>
  return (
    <>
      <Money amount={upstream_cost} /> / <Money amount={margin} />
    </>
  )
}

const ms = (value: number | null): string => (value === null ? '–' : `${Math.round(value)} ms`)

function TestResult({ tested }: { readonly tested: Tested }) {
  return (
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
        {tested.upstream_model}: {tested.input_tokens} → {tested.output_tokens},{' '}
        <Money amount={tested.cost} /> {t('credits')}
        {tested.upstream_cost !== null && (
          <>
            {' · '}
            {t('Provider cost')} <Money amount={tested.upstream_cost} />
          </>
        )}
      </p>
    </div>
  )
}

export function Channels() {
  const { user } = useSession()
  const list = useGet('listChannels', {}, { refetchInterval: REFRESH_MS })
  const meta = { done: t('Channel changed'), changes: ['/channels'] } as const
  const toggle = useMutation({
    meta,
    mutationFn: ({ id, state }: Channel) =>
      request(state === 'active' ? 'pauseChannel' : 'resumeChannel', { id }),
  })
  const test = useMutation({
    mutationFn: ({ id }: Channel) => request('testChannel', { id }),
  })
  const margins = useGet('showInstallationUsage', { by: 'channel', period: MARGIN_PERIOD })
  const marginOf = new Map(margins.data?.rows.map((row) => [row.channel_id, row]))
  const mayAct = user.installation_role === 'operator'
  const columns: Column<Channel>[] = [
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
    { name: t('Keys'), cell: (channel) => <Keys {...channel} /> },
    {
      name: t('Choice'),
      cell: ({ strategies }) => strategies.map((strategy) => STRATEGY_NAMES[strategy]()).join(', '),
    },
    {
      name: t('Cost / margin, 30 days'),
      isNumber: true,
      cell: ({ id }) => <CostAndMargin {...marginOf.get(id)} />,
    },
    {
      name: t('State'),
      cell: (channel) => (
        <span className="flex flex-col items-start gap-1">
          <State {...channel} />
          <Breaker {...channel} />
        </span>
      ),
    },
    { name: t('Under way'), isNumber: true, cell: ({ in_flight, open_tasks }) => in_flight + open_tasks },
    {
      name: t('Failed in 5 min'),
      isNumber: true,
      cell: ({ error_rate, recent_attempts }) =>
        error_rate === null
          ? '–'
          : t('{percent} % of {count}', {
              percent: (error_rate * PERCENT).toFixed(1),
              count: recent_attempts.toLocaleString('en'),
            }),
    },
    {
      name: t('Median / 99 of 100'),
      isNumber: true,
      cell: ({ latency_p50_ms, latency_p99_ms }) => (
        <span className="flex flex-col">
          <span>{ms(latency_p50_ms)}</span>
          <span className="text-quiet">{ms(latency_p99_ms)}</span>
        </span>
      ),
    },
    {
      name: t('Actions'),
      cell: (channel) =>
        mayAct &&
        channel.configured && (
          <span className="flex gap-1">
            <Button
              kind="quiet"
              isBusy={test.isPending && test.variables?.id === channel.id}
              onClick={() => test.mutate(channel)}
            >
              {t('Test')}
            </Button>
            {channel.state === 'active' ? (
              <>
                <Button kind="quiet" onClick={() => toggle.mutate(channel)}>
                  {t('Pause')}
                </Button>
                <ConfirmButton
                  title={t('Drain {name}', { name: channel.id })}
                  description={t(
                    'It takes no new call. Calls and tasks under way go on, and it can be removed when they are over.',
                  )}
                  name={channel.id}
                  act={t('Drain')}
                  meta={meta}
                  onConfirm={() => request('drainChannel', { id: channel.id })}
                />
              </>
            ) : (
              <Button kind="quiet" onClick={() => toggle.mutate(channel)}>
                {t('Resume')}
              </Button>
            )}
          </span>
        ),
    },
  ]
  return (
    <>
      <PageHeader
        title={t('Channels')}
        description={t('The ways to providers: how each does in every process, and whether it takes calls.')}
      />
      <ErrorState error={toggle.error ?? test.error} />
      {test.data && <TestResult tested={test.data} />}
      <Panel>
        <QueryState query={list} />
        {list.data?.data.length === 0 && <EmptyState title={t('The configuration has no channels.')} />}
        {list.data && list.data.data.length > 0 && (
          <Table caption={t('Channels')} columns={columns} rows={list.data.data} keyOf={({ id }) => id} />
        )}
      </Panel>
    </>
  )
}
