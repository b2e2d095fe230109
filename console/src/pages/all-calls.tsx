/** The calls of all accounts, for operators: each leads to its account's log. */
import { getRouteApi } from '@tanstack/react-router'
import type { AnswerOf } from '../api/client.ts'
import { useGet, useList } from '../api/read.ts'
import { t } from '../i18n.ts'
import { PageHeader, StatusBadge } from '../ui/states.tsx'
import { type Column, ListPanel } from '../ui/table.tsx'
import { Money, NONE, TextLink, Time } from '../ui/text.tsx'
import { Charts } from './calls/charts.tsx'
import { Filters } from './calls/filters.tsx'
import { describeStatuses, toCallQuery } from './calls/query.ts'

const route = getRouteApi('/signed-in/all-calls')

type Call = AnswerOf<'listAllCalls'>['data'][number]

/** Without a choice. */
const USUAL = { period: 'today' }

export function AllCalls() {
  const { account: _, ...asked } = route.useSearch()
  const filters = { ...USUAL, ...asked }
  const { account_id: id = '' } = filters
  const list = useList('listAllCalls', toCallQuery(filters) as never)
  const account = useGet('showAccount', { id }, { enabled: id !== '', refetchInterval: false }).data
  const idNames = new Map([
    ...list.rows.map(({ key_id, key_name }) => [key_id, key_name] as const),
    [id, account?.name ?? id] as const,
  ])
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
      <Filters isWhole filters={filters} usual={USUAL} idNames={idNames} rows={list.rows} />
      {/* On a small screen the table comes first. */}
      <div className="flex flex-col gap-4 lg:flex-col-reverse">
        <ListPanel caption={t('All calls')} list={list} columns={columns} empty={t('No calls match.')} />
        <Charts isReady={!list.isPending} filters={filters} />
      </div>
    </>
  )
}
