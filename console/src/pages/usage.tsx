/** What an account used: by day and by model, key, member or state, beside the period before. */
import { useLingui } from '@lingui/react'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { showUsage } from '../../../schemas/management/calls/usage.ts'
import type { AnswerOf } from '../../../schemas/management/operation.ts'
import { parseCredits, printCredits } from '../../../schemas/money.ts'
import { csvRecord } from '../../../src/core/call-log/csv-records.ts'
import { get } from '../api/client.ts'
import { keyNamesQuery } from '../api/key-names.ts'
import { useAccount } from '../api/session.ts'
import { useChangeSearch } from '../change-search.ts'
import { t } from '../i18n.ts'
import { Button } from '../ui/button.tsx'
import { Chart, type Series } from '../ui/chart.tsx'
import { SelectField } from '../ui/field.tsx'
import { printCount, printShortAmount } from '../ui/numbers.ts'
import { EmptyState, ErrorState, PageHeader, Panel, Skeleton, Stat } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { CodeBlock, Money } from '../ui/text.tsx'
import { type Period, PeriodFields } from './period.tsx'
import { saveFile } from './save-file.ts'
import { SavedViews } from './saved-views.tsx'

const route = getRouteApi('/signed-in/usage')

type Usage = AnswerOf<typeof showUsage>
type Group = Usage['groups'][number]
type Day = Usage['by_day'][number]
type Dimension = 'model' | 'key' | 'member' | 'status'

const DAY_MS = 86_400_000
/** Groups with a line each in the chart; the table has all. */
const LINES = 2
const LINE_TONES = ['good', 'warn'] as const
const DIMENSIONS: readonly Dimension[] = ['model', 'key', 'member', 'status']

const dimensionNames = (): Readonly<Record<Dimension, string>> => ({
  model: t('Model'),
  key: t('Key'),
  member: t('Member'),
  status: t('State'),
})

const isDimension = (text: string | undefined): text is Dimension => DIMENSIONS.includes(text as Dimension)

const dateOf = (epochMs: number): string => new Date(epochMs).toISOString().slice(0, 10)

/** Returns every day of the period, UTC. */
function daysOf({ period_from, period_to }: Usage): string[] {
  const first = Math.floor(Date.parse(period_from) / DAY_MS)
  const count = Math.ceil(Date.parse(period_to) / DAY_MS) - first
  return Array.from({ length: count }, (_, index) => dateOf((first + index) * DAY_MS))
}

const costOf = (rows: readonly Day[]): string =>
  printCredits(rows.reduce((sum, { cost }) => sum + parseCredits(cost), 0n))

const tokensOf = ({ input_tokens, output_tokens }: Usage['total']): number => input_tokens + output_tokens

/** Prints how much more or less it is than in the period before. */
function trend(now: number, before: number): string {
  if (before === 0) return t('nothing in the period before')
  const percent = Math.round((now / before - 1) * 100)
  return t('{change} % to the period before', { change: percent > 0 ? `+${percent}` : String(percent) })
}

function csvOf({ by_day, groups }: Usage, by: Dimension): string {
  const names = new Map(groups.map(({ id, name }) => [id, name]))
  const header = ['date', by, 'name', 'requests', 'cost', 'input_tokens', 'output_tokens', 'cached_tokens']
  const rows = by_day
    .toSorted((a, b) => a.date.localeCompare(b.date))
    .map((day) => [
      day.date,
      day.group,
      names.get(day.group) ?? day.group,
      day.requests,
      day.cost,
      day.input_tokens,
      day.output_tokens,
      day.cached_tokens,
    ])
  return [header, ...rows].map(csvRecord).join('')
}

function Charts({ usage }: { readonly usage: Usage }) {
  const days = daysOf(usage)
  const byDay = Map.groupBy(usage.by_day, ({ date }) => date)
  const rowsOf = (date: string) => byDay.get(date) ?? []
  const ofGroup = (date: string, id: string) => rowsOf(date).filter(({ group }) => group === id)
  const dearest = usage.groups.length > 1 ? usage.groups.slice(0, LINES) : []
  const times = days.map((date) => Date.parse(date) / 1000)
  const costs = (rows: (date: string) => readonly Day[]) => days.map((date) => Number(costOf(rows(date))))
  const cost: Series[] = [
    { name: t('All'), kind: 'bars', tone: 'accent', values: costs(rowsOf) },
    ...dearest.map(
      ({ id, name }, index): Series => ({
        name: name === '' ? t('None') : name,
        kind: 'line',
        tone: LINE_TONES[index] ?? 'warn',
        values: costs((date) => ofGroup(date, id)),
      }),
    ),
  ]
  const sum = (of: (day: Day) => number) =>
    days.map((date) => rowsOf(date).reduce((all, day) => all + of(day), 0))
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      <Chart
        title={t('Cost in credits')}
        times={times}
        print={printShortAmount}
        series={cost}
        cell={(index, at) => {
          const date = days[at] ?? ''
          return (
            <Money
              amount={costOf(index === 0 ? rowsOf(date) : ofGroup(date, dearest[index - 1]?.id ?? ''))}
            />
          )
        }}
      />
      <Chart
        title={t('Tokens')}
        times={times}
        print={printCount}
        series={[
          { name: t('Input'), kind: 'bars', tone: 'accent', values: sum((day) => day.input_tokens) },
          { name: t('Output'), kind: 'line', tone: 'good', values: sum((day) => day.output_tokens) },
        ]}
      />
    </div>
  )
}

interface ReportProps {
  readonly usage: Usage
  readonly by: Dimension
  readonly period: Period
  readonly keyId: string | undefined
}

function Report({ usage, by, period, keyId }: ReportProps) {
  const { account_id: account } = useAccount()
  const { total, before, groups } = usage
  const all = Number(total.cost)
  const nameOf = ({ id, name }: Group): ReactNode => {
    const label = name === '' ? t('None') : name
    if (by === 'member') return label
    const filter = by === 'key' ? { key_id: id } : { [by]: id, ...(keyId && { key_id: keyId }) }
    return (
      <Link to="/calls" search={{ account, ...period, ...filter }} className="text-accent hover:underline">
        {label}
      </Link>
    )
  }
  const count = (value: number) => value.toLocaleString('en')
  const columns: Column<Group>[] = [
    { name: dimensionNames()[by], cell: nameOf },
    { name: t('Calls'), isNumber: true, cell: ({ requests }) => count(requests) },
    { name: t('Input tokens'), isNumber: true, cell: ({ input_tokens }) => count(input_tokens) },
    { name: t('Cached'), isNumber: true, cell: ({ cached_tokens }) => count(cached_tokens) },
    { name: t('Output tokens'), isNumber: true, cell: ({ output_tokens }) => count(output_tokens) },
    { name: t('Cost in credits'), isNumber: true, cell: ({ cost }) => <Money amount={cost} /> },
    {
      name: t('Share'),
      isNumber: true,
      cell: ({ cost }) => (all > 0 ? `${((Number(cost) / all) * 100).toFixed(1)} %` : '–'),
    },
  ]
  return (
    <div className="flex flex-col gap-4">
      <dl className="grid gap-4 sm:grid-cols-3">
        <Stat
          name={t('Cost in credits')}
          value={<Money amount={total.cost} />}
          note={trend(all, Number(before.cost))}
        />
        <Stat name={t('Calls')} value={count(total.requests)} note={trend(total.requests, before.requests)} />
        <Stat
          name={t('Tokens')}
          value={count(tokensOf(total))}
          note={trend(tokensOf(total), tokensOf(before))}
        />
      </dl>
      {groups.length === 0 ? (
        <Panel>
          <EmptyState title={t('No call in this period.')}>
            <CodeBlock
              label="curl"
              code={`curl "${location.origin}/v1/logs?limit=1" -H "Authorization: Bearer $TOLLGATE_KEY"`}
            />
          </EmptyState>
        </Panel>
      ) : (
        <>
          <Charts usage={usage} />
          <Panel title={dimensionNames()[by]}>
            <Table caption={t('Usage')} columns={columns} rows={groups} keyOf={({ id }) => id} />
          </Panel>
        </>
      )}
    </div>
  )
}

export function Usage() {
  useLingui()
  const { account_id: accountId, kind, role } = useAccount()
  const { by: given, key_id: keyId, period, from, to } = route.useSearch()
  const by = isDimension(given) ? given : 'model'
  const chosen: Period = { ...(period && { period }), ...(from && { from }), ...(to && { to }) }
  const keys = useQuery({ ...keyNamesQuery(accountId), enabled: role !== 'billing' })
  // A member reads the usage of one key at a time.
  const key = keyId ?? (role === 'member' ? keys.data?.data[0]?.id : undefined)
  const hasNoKey = role === 'member' && keys.isSuccess && key === undefined
  const usage = useQuery({
    queryKey: ['/usage', accountId, by, key, chosen],
    enabled: role !== 'member' || key !== undefined,
    queryFn: ({ signal }) =>
      get<typeof showUsage>('/usage', { account_id: accountId, by, key_id: key, ...chosen } as never, signal),
  })
  const change = useChangeSearch()
  const { data } = usage
  return (
    <>
      <PageHeader
        title={t('Usage')}
        description={t('Days are UTC.')}
        actions={
          <Button
            disabled={data === undefined || data.by_day.length === 0}
            onClick={() =>
              data && saveFile(`usage-by-${by}-${dateOf(Date.now())}.csv`, 'text/csv', [csvOf(data, by)])
            }
          >
            CSV
          </Button>
        }
      />
      <SavedViews page="usage" filters={{ by: given, key_id: keyId, ...chosen }} />
      <section
        aria-label={t('Filters')}
        className="mb-4 grid grid-cols-2 gap-3 rounded-lg border border-line bg-surface p-3 md:grid-cols-4 xl:grid-cols-6"
      >
        <PeriodFields value={chosen} onChange={change} />
        <SelectField label={t('Group by')} value={by} onChange={({ target }) => change({ by: target.value })}>
          {DIMENSIONS.filter((name) => name !== 'member' || kind === 'organization').map((name) => (
            <option key={name} value={name}>
              {dimensionNames()[name]}
            </option>
          ))}
        </SelectField>
        {role !== 'billing' && (
          <SelectField
            label={t('Key')}
            value={key ?? ''}
            onChange={({ target }) => change({ key_id: target.value })}
          >
            {role !== 'member' && <option value="">{t('All')}</option>}
            {keys.data?.data.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </SelectField>
        )}
      </section>
      {hasNoKey && <EmptyState title={t('You have no key yet.')} />}
      {usage.isLoading && <Skeleton rows={8} />}
      {usage.error && <ErrorState error={usage.error} onRetry={() => void usage.refetch()} />}
      {data && <Report usage={data} by={by} period={chosen} keyId={key} />}
    </>
  )
}
