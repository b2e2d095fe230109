/** The running installation at a glance, live: calls, errors, latency, money in flight, lags, engines and processes. */

import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { Overview as OverviewData } from '../../../../schemas/management/live.ts'
import { type AnswerOf, linkTo } from '../../api/client.ts'
import { type LiveState, useLive } from '../../api/live.ts'
import { useGet } from '../../api/read.ts'
import { printDuration, printNumber, printShortAmount, printShortCount } from '../../format.ts'
import { t } from '../../i18n.ts'
import { LatencyChart } from '../../ui/call-charts.tsx'
import { Chart } from '../../ui/chart.tsx'
import { Badge, EmptyState, PageHeader, Panel, QueryState, Stat } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Money, Time } from '../../ui/text.tsx'
import { HealthPanels } from './health.tsx'

type Installation = AnswerOf<'showInstallation'>
type Process = Installation['processes'][number]

/** 15 minutes, with an overview every two seconds. */
const KEPT = 450

const ENGINES: Readonly<Record<string, string>> = {
  postgres: 'PostgreSQL',
  nats: 'NATS',
  clickhouse: 'ClickHouse',
}

const computeRate = (count: number, seconds: number): number => (seconds > 0 ? count / seconds : 0)

function LiveBadge({ state }: { readonly state: LiveState }) {
  const shown = {
    connecting: [t('Connecting'), 'neutral'],
    live: [t('Live'), 'good'],
    lost: [t('Connection lost, trying again'), 'warn'],
  } as const
  const [name, tone] = shown[state]
  return (
    <span role="status">
      <Badge tone={tone}>{name}</Badge>
    </span>
  )
}

function Figures({ now }: { readonly now: OverviewData | null }) {
  const rate = now === null ? '–' : printShortAmount(computeRate(now.calls, now.seconds))
  const failed = now === null || now.calls === 0 ? '–' : `${((now.failed / now.calls) * 100).toFixed(1)}%`
  const printLatency = (value: number | null | undefined) => (value == null ? '–' : printDuration(value))
  return (
    <dl className="grid gap-4 sm:grid-cols-2 xl:grid-cols-4">
      <Stat name={t('Calls per second')} value={rate} />
      <Stat name={t('Failed or refused')} value={failed} note={t('for calls in the last two seconds')} />
      <Stat name={t('Time per call, p50')} value={printLatency(now?.latency_p50_ms)} />
      <Stat name={t('Time per call, p99')} value={printLatency(now?.latency_p99_ms)} />
    </dl>
  )
}

function Standing({ now }: { readonly now: Installation }) {
  return (
    <dl className="grid gap-4 sm:grid-cols-2 xl:grid-cols-4">
      <Stat name={t('Calls in flight')} value={printNumber(now.calls_in_flight)} />
      <Stat
        name={t('Money in flight')}
        value={<Money amount={now.reserved} />}
        note={t('credits, by the estimates of open calls')}
      />
      <Stat
        name={t('Settlement lag')}
        value={printDuration(now.settlement_lag_seconds * 1000)}
        note={t('{count, plural, one {# settlement is not booked} other {# settlements are not booked}}', {
          count: now.unbooked_settlements,
        })}
      />
      <Stat
        name={t('Log lag')}
        value={printDuration(now.log_lag_seconds * 1000)}
        note={t('from the books to the call log')}
      />
    </dl>
  )
}

function Course({ points }: { readonly points: readonly OverviewData[] }) {
  const times = points.map(({ at }) => Date.parse(at) / 1000)
  const computeRates = (of: (point: OverviewData) => number) =>
    points.map((point) => computeRate(of(point), point.seconds))
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      <Chart
        title={t('Calls per second')}
        times={times}
        print={printShortCount}
        series={[
          { name: t('All'), kind: 'line', tone: 'series-1', values: computeRates(({ calls }) => calls) },
          {
            name: t('Failed'),
            kind: 'line',
            tone: 'series-bad',
            values: computeRates(({ failed }) => failed),
          },
        ]}
      />
      <LatencyChart times={times} points={points} />
    </div>
  )
}

function Parts({ now: { engines, processes } }: { readonly now: Installation }) {
  const columns: Column<Process>[] = [
    { name: t('Process'), cell: ({ process }) => process },
    { name: t('Host'), cell: ({ host }) => host },
    { name: t('Process id'), isNumber: true, cell: ({ pid }) => pid },
    { name: t('Version'), cell: ({ version }) => version },
    { name: t('Since'), isTime: true, cell: ({ started_at }) => <Time at={started_at} /> },
    { name: t('Calls in flight'), isNumber: true, cell: ({ calls_in_flight }) => calls_in_flight },
    {
      name: t('Status'),
      cell: ({ is_draining }) => (
        <Badge tone={is_draining ? 'warn' : 'good'}>{is_draining ? t('Draining') : t('Running')}</Badge>
      ),
    },
  ]
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 xl:grid-cols-[18rem_minmax(0,1fr)]">
      <Panel title={t('Engines')}>
        <ul className="divide-y divide-line">
          {engines.map(({ name, is_up }) => (
            <li key={name} className="flex items-center justify-between px-4 py-2">
              {ENGINES[name] ?? t('Object store')}
              <Badge tone={is_up ? 'good' : 'bad'}>{is_up ? t('Up') : t('Down')}</Badge>
            </li>
          ))}
        </ul>
      </Panel>
      <Panel title={t('Processes')}>
        <Table
          caption={t('Processes')}
          columns={columns}
          rows={processes}
          toKey={({ host, process, pid }) => `${host} ${process} ${pid}`}
        />
      </Panel>
    </div>
  )
}

export function Overview() {
  const [points, setPoints] = useState<readonly OverviewData[]>([])
  const first = useGet('showInstallation', {})
  const state = useLive(linkTo('watchInstallation', {}), ['overview'], (_, data) =>
    setPoints((before) => [...before.slice(1 - KEPT), data as OverviewData]),
  )
  const latest = points.at(-1) ?? null
  const now = latest ?? first.data
  return (
    <>
      <PageHeader
        title={t('Overview')}
        description={t("What the installation's processes report every two seconds.")}
        actions={<LiveBadge state={state} />}
      />
      <HealthPanels />
      {latest === null && <QueryState query={first} rows={8} />}
      {now && (
        <div className="flex flex-col gap-4">
          <Figures now={latest} />
          <Standing now={now} />
          {points.length > 1 ? (
            <Course points={points} />
          ) : (
            <Panel>
              <EmptyState title={t('The charts appear with the second report.')} />
            </Panel>
          )}
          <Parts now={now} />
          <p className="flex gap-4 text-sm">
            <Link to="/channels" className="text-accent hover:underline">
              {t('Channels')}
            </Link>
            <Link
              to="/all-calls"
              search={{ status: 'error,interrupted' }}
              className="text-accent hover:underline"
            >
              {t('Failed calls of all accounts')}
            </Link>
          </p>
        </div>
      )}
    </>
  )
}
