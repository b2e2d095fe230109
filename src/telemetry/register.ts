/** Registers metrics whose values are computed from totals when they are read. */
import type { Metric, Registry } from 'prom-client'

export type Register = (
  name: string,
  help: string,
  type: 'counter' | 'gauge' | 'histogram',
  values: () => unknown[],
  aggregator?: 'sum' | 'max',
) => void

export const registerIn =
  (registry: Registry): Register =>
  (name, help, type, values, aggregator = 'sum') => {
    // prom-client takes any object that can be read so, though its types name only its own classes.
    registry.registerMetric({
      name,
      help,
      type,
      aggregator,
      get: async () => ({ name, help, type, aggregator, values: values() }),
    } as unknown as Metric)
  }

/** Registers a counter with one label, of few values; the returned function counts one of them. */
export function countBy(
  register: Register,
  label: string,
  name: string,
  help: string,
): (labelled: string) => void {
  const totals = new Map<string, number>()
  register(name, help, 'counter', () =>
    [...totals].map(([labelled, value]) => ({ labels: { [label]: labelled }, value })),
  )
  return (labelled) => void totals.set(labelled, (totals.get(labelled) ?? 0) + 1)
}
