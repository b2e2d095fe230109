/** The time that calls took: the median and what 99 of 100 stay below. */
import { useLingui } from '@lingui/react'
import { t } from '../i18n.ts'
import { Chart } from './chart.tsx'
import { printDuration } from './numbers.ts'

interface Latency {
  readonly latency_p50_ms: number | null
  readonly latency_p99_ms: number | null
}

interface LatencyChartProps {
  /** Epoch seconds, ascending. */
  readonly times: readonly number[]
  /** One for each instant; null leaves a gap. */
  readonly points: readonly (Latency | null)[]
}

export function LatencyChart({ times, points }: LatencyChartProps) {
  useLingui()
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
