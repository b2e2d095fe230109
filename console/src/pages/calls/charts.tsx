/** Charts of the calls that match the filters: how many, what they cost, how long they took. */
import { useLingui } from '@lingui/react'
import { useMemo } from 'react'
import type { seriesOfCalls } from '../../../../schemas/management/calls/calls.ts'
import type { AnswerOf } from '../../../../schemas/management/operation.ts'
import { useGet } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Chart } from '../../ui/chart.tsx'
import { LatencyChart } from '../../ui/latency-chart.tsx'
import { printCount, printShortAmount } from '../../ui/numbers.ts'
import { ErrorState, Skeleton } from '../../ui/states.tsx'
import { Money } from '../../ui/text.tsx'
import type { CallFilters } from './filters.tsx'

type CallSeries = AnswerOf<typeof seriesOfCalls>
const MAX_STEPS = 500

/** Returns every step from the first call on: one without calls is zero, not absent. */
function steps({ period_from, period_to, bucket_seconds, data }: CallSeries) {
  const first = data[0]
  if (first === undefined) return []
  const bucketMs = bucket_seconds * 1000
  const byTime = new Map(data.map((point) => [Date.parse(point.at), point]))
  const begin = Math.max(Date.parse(period_from), Date.parse(first.at) - bucketMs)
  const last = Math.min(Date.parse(period_to), Date.now())
  const from = Math.floor(begin / bucketMs) * bucketMs
  const count = Math.min(MAX_STEPS, Math.ceil((last - from) / bucketMs))
  return Array.from({ length: count }, (_, index) => {
    const at = from + index * bucketMs
    return { at: at / 1000, point: byTime.get(at) ?? null }
  })
}

export function Charts({ accountId, filters }: { accountId: string; filters: CallFilters }) {
  useLingui()
  const { order: _, ...narrowing } = filters
  const series = useGet<typeof seriesOfCalls>('/calls/series', { account_id: accountId, ...narrowing })
  const shown = useMemo(() => (series.data === undefined ? [] : steps(series.data)), [series.data])
  const times = useMemo(() => shown.map(({ at }) => at), [shown])
  if (series.isPending) return <Skeleton rows={5} />
  if (series.error) return <ErrorState error={series.error} onRetry={() => void series.refetch()} />
  if (shown.length === 0) return null
  return (
    <div className="mb-4 grid gap-4 lg:grid-cols-3">
      <Chart
        title={t('Calls')}
        times={times}
        print={printCount}
        series={[
          {
            name: t('All'),
            kind: 'bars',
            tone: 'accent',
            values: shown.map(({ point }) => point?.requests ?? 0),
          },
          {
            name: t('Failed'),
            kind: 'bars',
            tone: 'bad',
            values: shown.map(({ point }) => point?.failed ?? 0),
          },
        ]}
      />
      <Chart
        title={t('Cost in credits')}
        times={times}
        print={printShortAmount}
        series={[
          {
            name: t('Cost'),
            kind: 'bars',
            tone: 'good',
            values: shown.map(({ point }) => Number(point?.cost ?? 0)),
          },
        ]}
        cell={(_, at) => <Money amount={shown[at]?.point?.cost ?? '0'} />}
      />
      <LatencyChart times={times} points={shown.map(({ point }) => point)} />
    </div>
  )
}
