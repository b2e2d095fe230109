/** Charts of the calls that match the filters: number, cost and duration. */
import { useMemo } from 'react'
import type { AnswerOf } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { CallsChart, CostChart, LatencyChart } from '../../ui/call-charts.tsx'
import { QueryState } from '../../ui/states.tsx'
import type { CallFilters } from './filters.tsx'

type CallSeries = AnswerOf<'seriesOfCalls'>
const MAX_STEPS = 500

/** Returns every step from the first call on. A step without calls counts zero. */
function listSteps({ period_from, period_to, bucket_seconds, data }: CallSeries) {
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
  const { order: _, ...narrowing } = filters
  const series = useGet('seriesOfCalls', { account_id: accountId, ...narrowing })
  const shown = useMemo(() => (series.data === undefined ? [] : listSteps(series.data)), [series.data])
  const times = useMemo(() => shown.map(({ at }) => at), [shown])
  if (!series.isSuccess) return <QueryState query={series} rows={5} />
  if (shown.length === 0) return null
  const points = shown.map(({ point }) => point)
  return (
    <div className="mb-4 grid gap-4 lg:grid-cols-3">
      <CallsChart title={t('Calls')} times={times} points={points} />
      <CostChart title={t('Cost in credits')} times={times} points={points} />
      <LatencyChart times={times} points={points} />
    </div>
  )
}
