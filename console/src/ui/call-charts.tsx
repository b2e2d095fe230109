/** Charts of calls over time: their number, cost and duration. */

import { printDuration, printShortAmount, printShortCount } from '../format.ts'
import { t } from '../i18n.ts'
import { Chart } from './chart.tsx'
import type { Query } from './states.tsx'
import { Money } from './text.tsx'

interface ChartProps<Point> {
  /** What the points come from, if the chart is shown before they are there. */
  readonly query?: Query
  /** The time that each point stands for; default: until the next one. */
  readonly bucketSeconds?: number | undefined
  /** Called with a part that the reader has dragged over, epoch seconds. */
  readonly onZoom?: (from: number, to: number) => void
  /** Epoch seconds, ascending. */
  readonly times: readonly number[]
  /** One per instant; null leaves a gap. */
  readonly points: readonly (Point | null)[]
}

interface Counted {
  readonly requests: number
  readonly failed: number
}

export const CallsChart = ({
  title,
  times,
  points,
  ...rest
}: ChartProps<Counted> & { readonly title: string }) => (
  <Chart
    {...rest}
    title={title}
    times={times}
    print={printShortCount}
    series={[
      { name: t('All'), kind: 'bars', tone: 'series-1', values: points.map((point) => point?.requests ?? 0) },
      {
        name: t('Failed'),
        kind: 'bars',
        tone: 'series-bad',
        values: points.map((point) => point?.failed ?? 0),
      },
    ]}
  />
)

/** The cost of a point without calls is 0. */
export const CostChart = ({
  title,
  times,
  points,
  ...rest
}: ChartProps<{ readonly cost: string }> & { readonly title: string }) => (
  <Chart
    {...rest}
    title={title}
    times={times}
    print={printShortAmount}
    series={[
      {
        name: t('Cost'),
        kind: 'bars',
        tone: 'series-1',
        values: points.map((point) => Number(point?.cost ?? 0)),
      },
    ]}
    cell={(_, at) => <Money amount={points[at]?.cost ?? '0'} />}
  />
)

interface Latency {
  readonly latency_p50_ms: number | null
  readonly latency_p99_ms: number | null
}

/** The median and the p99. */
export function LatencyChart({ times, points, ...rest }: ChartProps<Latency>) {
  return (
    <Chart
      {...rest}
      title={t('Time per call')}
      times={times}
      print={printDuration}
      series={[
        {
          name: 'p50',
          kind: 'line',
          tone: 'series-1',
          values: points.map((point) => point?.latency_p50_ms ?? null),
        },
        {
          name: 'p99',
          kind: 'line',
          tone: 'series-2',
          values: points.map((point) => point?.latency_p99_ms ?? null),
        },
      ]}
    />
  )
}
