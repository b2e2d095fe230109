/** Charts of calls over time: their number, their cost, and the time that they took. */
import { t } from '../i18n.ts'
import { Chart } from './chart.tsx'
import { printCount, printDuration, printShortAmount } from './numbers.ts'
import { Money } from './text.tsx'

interface ChartProps<Point> {
  /** Epoch seconds, ascending. */
  readonly times: readonly number[]
  /** One for each instant; null leaves a gap. */
  readonly points: readonly (Point | null)[]
}

interface Counted {
  readonly requests: number
  readonly failed: number
}

export const CallsChart = ({ title, times, points }: ChartProps<Counted> & { readonly title: string }) => (
  <Chart
    title={title}
    times={times}
    print={printCount}
    series={[
      { name: t('All'), kind: 'bars', tone: 'accent', values: points.map((point) => point?.requests ?? 0) },
      { name: t('Failed'), kind: 'bars', tone: 'bad', values: points.map((point) => point?.failed ?? 0) },
    ]}
  />
)

/** Of a point without a call the cost is 0. */
export const CostChart = ({
  title,
  times,
  points,
}: ChartProps<{ readonly cost: string }> & { readonly title: string }) => (
  <Chart
    title={title}
    times={times}
    print={printShortAmount}
    series={[
      {
        name: t('Cost'),
        kind: 'bars',
        tone: 'good',
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

/** The median, and what 99 of 100 calls stay below. */
export function LatencyChart({ times, points }: ChartProps<Latency>) {
  return (
    <Chart
      title={t('Time per call')}
      times={times}
      print={printDuration}
      series={[
        {
          name: t('Median'),
          kind: 'line',
          tone: 'accent',
          values: points.map((point) => point?.latency_p50_ms ?? null),
        },
        {
          name: t('99 of 100'),
          kind: 'line',
          tone: 'warn',
          values: points.map((point) => point?.latency_p99_ms ?? null),
        },
      ]}
    />
  )
}
