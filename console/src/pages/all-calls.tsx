/** The calls of all accounts, for operators: each leads to its account's log. */
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import type { AnswerOf } from '../api/client.ts'
import { useGet, useList } from '../api/read.ts'
import { useChangeSearch } from '../change-search.ts'
import { readZoneName, toZoneWindow } from '../format.ts'
import { t } from '../i18n.ts'
import { Button } from '../ui/button.tsx'
import { CallsChart, LatencyChart } from '../ui/call-charts.tsx'
import { Field, Form } from '../ui/form.tsx'
import { listNames, PageHeader, StatusBadge } from '../ui/states.tsx'
import { type Column, ListPanel } from '../ui/table.tsx'
import { Money, NONE, TextLink, Time } from '../ui/text.tsx'
import { describeStatuses } from './calls/query.ts'
import { Filter, FilterPanel, PeriodFilter, useZoom } from './filters.tsx'

const route = getRouteApi('/signed-in/all-calls')

type Call = AnswerOf<'listAllCalls'>['data'][number]

const TYPED = ['account_id', 'channel_id', 'model', 'key_id', 'error_code', 'ref', 'session_id'] as const

/** Typed filters are applied together: each change would be a query. */
function TypedFilters({ filters }: { readonly filters: Readonly<Record<string, string | undefined>> }) {
  const change = useChangeSearch()
  const [typed, setTyped] = useState(() =>
    Object.fromEntries(TYPED.map((name) => [name, filters[name] ?? ''])),
  )
  const labels: Readonly<Record<(typeof TYPED)[number], string>> = {
    account_id: t('Account id'),
    channel_id: t('Channel'),
    model: t('Model'),
    key_id: t('Key id'),
    error_code: t('Error code'),
    ref: t('Request or task id'),
    session_id: t('Session'),
  }
  const apply = () => change(Object.fromEntries(TYPED.map((name) => [name, (typed[name] ?? '').trim()])))
  return (
    <Form onSubmit={apply} className="contents">
      {TYPED.map((name) => (
        <Field
          key={name}
          label={labels[name]}
          value={typed[name] ?? ''}
          onText={(text) => setTyped((now) => ({ ...now, [name]: text }))}
        />
      ))}
      <div className="flex items-end">
        <Button type="submit" kind="primary">
          {t('Apply')}
        </Button>
      </div>
    </Form>
  )
}

function Charts({ filters }: { readonly filters: object }) {
  const series = useGet('seriesOfAllCalls', { ...filters, timezone: readZoneName() } as never)
  const points = series.data?.data ?? []
  const times = points.map(({ at }) => Date.parse(at) / 1000)
  const onZoom = useZoom()
  const common = { query: series, times, points, bucketSeconds: series.data?.bucket_seconds, onZoom }
  return (
    <div className="mb-4 grid gap-4 lg:grid-cols-2">
      <CallsChart {...common} title={t('Calls')} />
      <LatencyChart {...common} />
    </div>
  )
}

export function AllCalls() {
  const { account: _, ...asked } = route.useSearch()
  const filters = { period: 'today', ...asked }
  const query = { ...filters, ...toZoneWindow(filters) }
  const list = useList('listAllCalls', query as never)
  const statuses = describeStatuses()
  const columns: Column<Call>[] = [
    {
      name: t('Time'),
      isTime: true,
      cell: ({ id, created_at, account_id }) => (
        <TextLink to="/calls" search={{ account: account_id, period: 'all', call: String(id) }}>
          <Time at={created_at} />
        </TextLink>
      ),
    },
    {
      name: t('Account'),
      cell: ({ account_id, account_name }) => (
        <TextLink to="/accounts" search={{ open: account_id }}>
          {account_name ?? account_id}
        </TextLink>
      ),
    },
    { name: t('Model'), cell: ({ model }) => model },
    { name: t('Channel'), from: 'wide', cell: ({ channel_id }) => channel_id ?? NONE },
    {
      name: t('Status'),
      cell: ({ status, error_code, attempts_count: attempts }) => (
        <span className="flex items-center gap-2">
          <StatusBadge statuses={statuses} status={status} />
          {error_code !== null && <span className="text-quiet text-sm">{error_code}</span>}
          {attempts !== null && attempts > 1 && (
            <span className="text-quiet text-sm">{t('{attempts} attempts', { attempts })}</span>
          )}
        </span>
      ),
    },
    { name: t('Cost'), isNumber: true, cell: ({ cost }) => <Money amount={cost} /> },
    { name: t('Time taken'), isNumber: true, cell: ({ latency_ms }) => `${latency_ms} ms` },
  ]
  return (
    <>
      <PageHeader title={t('All calls')} description={t('The calls of every account, newest first.')} />
      <FilterPanel>
        <PeriodFilter value={filters} hasAll />
        <Filter
          name="status"
          label={t('Status')}
          value={filters.status}
          options={[
            ['error,interrupted', t('Failed')],
            ['error,interrupted,rejected', t('All but success')],
            ...listNames(statuses),
          ]}
        />
        <TypedFilters key={TYPED.map((name) => asked[name]).join('\n')} filters={asked} />
      </FilterPanel>
      <Charts filters={query} />
      <ListPanel caption={t('All calls')} list={list} columns={columns} empty={t('No calls match.')} />
    </>
  )
}
