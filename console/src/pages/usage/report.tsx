/** Sums of calls: totals compared with the previous period, charts by day, and a table of groups. */

import { ChartColumn } from 'lucide-react'
import type { ReactNode } from 'react'
import { parseCredits, printCredits } from '../../../../schemas/money.ts'
import type { AnswerOf } from '../../api/client.ts'
import {
  listDays,
  printNumber,
  printShare,
  printShortAmount,
  printShortCount,
  toDayStart,
} from '../../format.ts'
import { t } from '../../i18n.ts'
import { Chart } from '../../ui/chart.tsx'
import type { Series } from '../../ui/plot.tsx'
import { EmptyState, Panel, Stat } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { CodeBlock, Money, NONE } from '../../ui/text.tsx'
import { useZoom } from '../filters.tsx'

type AccountUsage = AnswerOf<'showUsage'>
type Group = AccountUsage['groups'][number]
type Day = AccountUsage['by_day'][number]

/** The sums to show, with groups of the page's own type. */
interface Sums<G extends Group> extends Omit<AccountUsage, 'groups'> {
  readonly groups: readonly G[]
}

/** The number of groups with a line in the chart; the table has all. */
const LINES = 2
const LINE_TONES = ['series-2', 'series-3'] as const

const sumCost = (rows: readonly Day[]): string =>
  printCredits(rows.reduce((sum, { cost }) => sum + parseCredits(cost), 0n))

const countTokens = ({ input_tokens, output_tokens }: AccountUsage['total']): number =>
  input_tokens + output_tokens

/** Prints the change since the previous period. */
function printTrend(now: number, before: number): string {
  if (before === 0) return t('none in the previous period')
  const percent = Math.round((now / before - 1) * 100)
  return t('{change}% compared with the previous period', {
    change: percent > 0 ? `+${percent}` : String(percent),
  })
}

function Charts({ usage }: { readonly usage: Sums<Group> }) {
  const onZoom = useZoom()
  const days = listDays(usage.period_from, usage.period_to)
  const byDay = Map.groupBy(usage.by_day, ({ date }) => date)
  const listRows = (date: string) => byDay.get(date) ?? []
  const listGroupRows = (date: string, id: string) => listRows(date).filter(({ group }) => group === id)
  const hasLines = usage.groups.length > 1 && usage.by_day.some(({ group }) => group === usage.groups[0]?.id)
  const dearest = hasLines ? usage.groups.slice(0, LINES) : []
  const times = days.map((date) => toDayStart(date).getTime() / 1000)
  const costs = (rows: (date: string) => readonly Day[]) => days.map((date) => Number(sumCost(rows(date))))
  const cost: Series[] = [
    { name: t('All'), kind: 'bars', tone: 'series-1', values: costs(listRows) },
    ...dearest.map(
      ({ id, name }, index): Series => ({
        name: name === '' ? t('None') : name,
        kind: 'line',
        tone: LINE_TONES[index] ?? 'series-2',
        values: costs((date) => listGroupRows(date, id)),
      }),
    ),
  ]
  const sum = (of: (day: Day) => number) =>
    days.map((date) => listRows(date).reduce((all, day) => all + of(day), 0))
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      <Chart
        title={t('Cost in credits')}
        times={times}
        print={printShortAmount}
        series={cost}
        onZoom={onZoom}
        cell={(index, at) => {
          const date = days[at] ?? ''
          return (
            <Money
              amount={sumCost(
                index === 0 ? listRows(date) : listGroupRows(date, dearest[index - 1]?.id ?? ''),
              )}
            />
          )
        }}
      />
      <Chart
        title={t('Tokens')}
        times={times}
        onZoom={onZoom}
        print={printShortCount}
        series={[
          { name: t('Input'), kind: 'bars', tone: 'series-1', values: sum((day) => day.input_tokens) },
          { name: t('Output'), kind: 'line', tone: 'series-2', values: sum((day) => day.output_tokens) },
        ]}
      />
    </div>
  )
}

interface ReportProps<G extends Group> {
  readonly usage: Sums<G>
  /** The translated name of the dimension. */
  readonly title: string
  renderName(group: G): ReactNode
  readonly columns?: readonly Column<G>[]
  readonly stats?: ReactNode
}

export function Report<G extends Group>({
  usage,
  title,
  renderName,
  columns: more = [],
  stats,
}: ReportProps<G>) {
  const { total, before, groups } = usage
  const all = Number(total.cost)
  const columns: Column<G>[] = [
    { name: title, cell: renderName },
    { name: t('Calls'), isNumber: true, cell: ({ requests }) => printNumber(requests) },
    { name: t('Input tokens'), isNumber: true, cell: ({ input_tokens }) => printNumber(input_tokens) },
    { name: t('Cached'), isNumber: true, cell: ({ cached_tokens }) => printNumber(cached_tokens) },
    { name: t('Output tokens'), isNumber: true, cell: ({ output_tokens }) => printNumber(output_tokens) },
    { name: t('Cost in credits'), isNumber: true, cell: ({ cost }) => <Money amount={cost} /> },
    {
      name: t('Share'),
      isNumber: true,
      cell: ({ cost }) => (all > 0 ? printShare(Number(cost) / all) : NONE),
    },
    ...more,
  ]
  return (
    <div className="flex flex-col gap-4">
      <dl className="grid gap-4 sm:grid-cols-3">
        <Stat
          name={t('Cost in credits')}
          value={<Money amount={total.cost} />}
          note={printTrend(all, Number(before.cost))}
        />
        <Stat
          name={t('Calls')}
          value={printNumber(total.requests)}
          note={printTrend(total.requests, before.requests)}
        />
        <Stat
          name={t('Tokens')}
          value={printNumber(countTokens(total))}
          note={printTrend(countTokens(total), countTokens(before))}
        />
        {stats}
      </dl>
      {groups.length === 0 ? (
        <Panel>
          <EmptyState icon={ChartColumn} title={t('There are no calls in this period.')} docs="api-rules.md">
            <CodeBlock
              label="curl"
              code={`curl "${location.origin}/v1/logs?limit=1" -H "Authorization: Bearer $TOLLGATE_KEY"`}
            />
          </EmptyState>
        </Panel>
      ) : (
        <>
          <Charts usage={usage} />
          <Panel title={title}>
            <Table isAdjustable caption={t('Usage')} columns={columns} rows={groups} />
          </Panel>
        </>
      )}
    </div>
  )
}
