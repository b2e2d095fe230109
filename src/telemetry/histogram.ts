/** A histogram that costs a call two additions and a short search: the hot path uses plain numbers. */

export interface HistogramValues {
  /** Number of observations of at most `bounds[i]` and above the bound before it; the last is without bound. */
  readonly counts: Float64Array
  sum: number
}

export const emptyHistogram = (bounds: readonly number[]): HistogramValues => ({
  counts: new Float64Array(bounds.length + 1),
  sum: 0,
})

export function observe(bounds: readonly number[], values: HistogramValues, value: number): void {
  let index = 0
  while (index < bounds.length && value > bounds[index]!) index++
  values.counts[index]! += 1
  values.sum += value
}

type Labels = Record<string, string | number>

interface Sample {
  value: number
  labels: Labels
  metricName: string
}

/** Returns cumulative buckets, sum and count in Prometheus's form. */
export function toSamples(
  name: string,
  bounds: readonly number[],
  values: HistogramValues,
  labels: Labels,
): Sample[] {
  const samples: Sample[] = []
  let total = 0
  for (const [index, count] of values.counts.entries()) {
    total += count
    const le = bounds[index] ?? '+Inf'
    samples.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: total })
  }
  samples.push({ metricName: `${name}_sum`, labels, value: values.sum })
  samples.push({ metricName: `${name}_count`, labels, value: total })
  return samples
}
