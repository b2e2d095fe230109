/** Charts of the calls that match the filters: number by status, cost and duration. */
import { useMemo } from 'react'
import { CALL_STATUSES } from '../../../../schemas/call-log/words.ts'
import type { AnswerOf } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { printDay, printShortCount, readZoneName, toDayStart } from '../../format.ts'
import { t } from '../../i18n.ts'
import { CostChart, LatencyChart } from '../../ui/call-charts.tsx'
import { Chart } from '../../ui/chart.tsx'
import { useZoom } from '../filters.tsx'
import { type CallFilters, describeStatuses, toCallQuery } from './query.ts'

type CallSeries = AnswerOf<'seriesOfCalls'>
const MAX_STEPS = 500
const DAY_SECONDS = 86_400
/** Success and failure differ for the color-blind too, so success is not green. */
const STATUS_TONES = {
  success: 'series-1',
  error: 'series-bad',
  interrupted: 'series-warn',
  rejected: 'series-other',
} as const

/** Returns every step from the first call on. A step without calls counts zero. Days may have 23 or 25 hours. */
function listSteps({ period_from, period_to, bucket_seconds, data }: CallSeries) {
  const [first] = data
  if (first === undefined) return []
  const byTime = new Map(data.map((point) => [Date.parse(point.at), point]))
  const firstMs = Date.parse(first.at)
  const bucketMs = bucket_seconds * 1000
  const toStart = (step: number): number =>
    bucket_seconds < DAY_SECONDS
      ? firstMs + step * bucketMs
      : toDayStart(printDay(first.at), (step * bucket_seconds) / DAY_SECONDS).getTime()
  // An empty step before the first call shows that it is the first.
  const begin = firstMs - bucketMs >= Date.parse(period_from) ? -1 : 0
  const last = Math.min(Date.parse(period_to), Date.now())
  return Array.from({ length: MAX_STEPS }, (_, index) => toStart(begin + index))
    .filter((at) => at < last)
    .map((at) => ({ at: at / 1000, point: byTime.get(at) ?? null }))
}

interface ChartsProps {
  /** The rows of the page come first. */
  readonly isReady: boolean
  /** Default: all accounts. */
  readonly accountId?: string
  readonly filters: CallFilters
}

export function Charts({ isReady, accountId, filters }: ChartsProps) {
  const { order: _, ...narrowing } = toCallQuery(filters)
  const onZoom = useZoom()
  const query = { account_id: accountId, ...narrowing, timezone: readZoneName() } as never
  const series = useGet(accountId === undefined ? 'seriesOfAllCalls' : 'seriesOfCalls', query)
  const shown = useMemo(() => (series.data === undefined ? [] : listSteps(series.data)), [series.data])
  const times = useMemo(() => shown.map(({ at }) => at), [shown])
  const points = shown.map(({ point }) => point)
  const statuses = describeStatuses()
  const common = {
    query: isReady ? series : { ...series, isPending: true },
    times,
    points,
    bucketSeconds: series.data?.bucket_seconds,
    onZoom,
  }
  return (
    <div className="grid gap-4 lg:grid-cols-3">
      <Chart
        title={t('Calls')}
        {...common}
        print={printShortCount}
        isStacked
        series={CALL_STATUSES.map((status) => {
          const values = points.map((point) => point?.by_status[status] ?? 0)
          return { name: statuses[status][1], kind: 'bars', tone: STATUS_TONES[status], values } as const
        })}
      />
      <CostChart {...common} title={t('Cost in credits')} />
      <LatencyChart {...common} />
    </div>
  )
}
