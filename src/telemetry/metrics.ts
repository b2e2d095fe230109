/**
 * The metrics of `GET /metrics`. A call adds to plain numbers of this process; only a scrape turns them into
 * Prometheus's text. Processes that share a port exchange snapshots, so that any of them answers for all.
 */

import { AggregatorRegistry, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { Settlement } from '../../schemas/call-log/columns.ts'
import type { CallStatus } from '../../schemas/call-log/row.ts'
import { CALL_STATUSES } from '../../schemas/call-log/words.ts'
import { type ChannelCounts, registerChannels } from './channel-metrics.ts'
import { GAUGE_NAMES, GAUGES, type GaugeName } from './gauges.ts'
import { emptyHistogram, type HistogramValues, observe, toSamples } from './histogram.ts'
import { type MeteringMeters, registerMetering } from './metering-metrics.ts'
import { type RefusalMeters, registerRefusals } from './refusal-metrics.ts'
import { type Register, registerIn } from './register.ts'
import { registerTasks, type TaskMeters } from './task-metrics.ts'

/** Upper bounds in seconds. The longest call takes an hour, and by default 180 seconds. */
const TTFB_BOUNDS_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600] as const
const DURATION_BOUNDS_SECONDS = [
  0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 180, 600, 1800, 3600,
] as const

/** Models beyond this many are counted under the empty name, as calls of no known model are. */
export const MAX_MODEL_LABELS = 2_000
/**
 * Interval at which a process with streams measures the delay of its event loop. Each measurement wakes it: every 20 ms, a
 * process at rest takes a fifth more CPU.
 */
const WATCH_MS = 50
/** For other processes: prom-client measures in any case, and this makes it rare. */
const NEVER_MS = 2 ** 31 - 1
const MS_PER_SECOND = 1_000

/** One ended call. */
export interface CallObservation {
  /** Canonical id; empty where the call was refused before its model was known. */
  readonly model: string
  readonly status: CallStatus
  /** Time to the first byte for the client; null when none was sent. */
  readonly ttfbMs: number | null
  readonly durationMs: number
  readonly inputTokens: number
  readonly outputTokens: number
}

/** @param model the label; empty for a name that is none of the catalog's */
export const toObservation = (settlement: Settlement, model: string): CallObservation => ({
  model,
  status: settlement.status,
  ttfbMs: settlement.ttfb_ms,
  durationMs: settlement.latency_ms,
  inputTokens: settlement.input_tokens,
  outputTokens: settlement.output_tokens,
})

interface GaugeReading {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const IN_FLIGHT = 'tollgate_calls_in_flight'

/** Plain data, fit for a message to another process. */
export type MetricsSnapshot = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

export interface Metrics extends RefusalMeters {
  call(observation: CallObservation): void
  readonly tasks: TaskMeters
  readonly metering: MeteringMeters
  /** Registers the process's counts of its channels; `read` is called at each scrape. */
  channels(read: () => readonly ChannelCounts[]): void
  /** Adds 1 when a call begins, -1 when it ends. */
  inFlight(change: 1 | -1): void
  /** Registers a gauge that is read at each scrape; null, or an exception, leaves it out. */
  observe(name: GaugeName, read: () => number | null, labels?: Readonly<Record<string, string>>): void
  /** Returns the present values of the gauges, and of the calls in flight. */
  readings(): GaugeReading[]
  snapshot(): Promise<MetricsSnapshot>
  /** Prometheus text of only this process. */
  text(): Promise<string>
}

/** Removes values that no message between processes can carry, such as the mean of no event-loop delays. */
function readable(metric: MetricsSnapshot[number]): MetricsSnapshot[number] {
  return { ...metric, values: metric.values.filter(({ value }) => Number.isFinite(value)) }
}

/** Returns the counters and histograms: what counts also when its process has ended. */
export const pickCounts = (snapshot: MetricsSnapshot): MetricsSnapshot =>
  snapshot.filter(({ type }) => String(type) !== 'gauge')

/** Returns the counters and histograms of two processes together, as one snapshot. */
export const addCounts = (one: MetricsSnapshot, other: MetricsSnapshot): MetricsSnapshot =>
  AggregatorRegistry.aggregate([pickCounts(one), pickCounts(other)]).getMetricsAsArray() as never

/** Prometheus text of several processes together. */
export function mergeSnapshots(snapshots: readonly MetricsSnapshot[]): Promise<string> {
  return AggregatorRegistry.aggregate([...snapshots]).metrics()
}

interface ModelTotals {
  /** By the index of the status in `CALL_STATUSES`. */
  readonly calls: Float64Array
  readonly ttfb: HistogramValues
  readonly duration: HistogramValues
  inputTokens: number
  outputTokens: number
}

const STATUS_INDEX = Object.fromEntries(CALL_STATUSES.map((status, index) => [status, index])) as Record<
  CallStatus,
  number
>

/** @param hasStreams clients wait for this process: whether its event loop is late is measured */
export function createMetrics(version: string, { hasStreams = false } = {}): Metrics {
  const models = new Map<string, ModelTotals>()
  let inFlightCalls = 0

  const findTotals = (model: string): ModelTotals => {
    const known = models.get(model)
    if (known) return known
    if (model !== '' && models.size >= MAX_MODEL_LABELS) return findTotals('')
    const totals: ModelTotals = {
      calls: new Float64Array(CALL_STATUSES.length),
      ttfb: emptyHistogram(TTFB_BOUNDS_SECONDS),
      duration: emptyHistogram(DURATION_BOUNDS_SECONDS),
      inputTokens: 0,
      outputTokens: 0,
    }
    models.set(model, totals)
    return totals
  }

  const registry = new Registry()
  const register = registerIn(registry)
  registerCalls(register, models)
  const channelCounts: (() => readonly ChannelCounts[])[] = []
  registerChannels(register, () => channelCounts.flatMap((read) => read()))
  const refusals = registerRefusals(register)
  const metering = registerMetering(register)
  const tasks = registerTasks(register)
  registerProcess(registry, version, () => inFlightCalls)
  registerDefaults(registry, hasStreams)
  const readers = registerGauges(registry)

  return {
    tasks,
    metering,
    ...refusals,
    call({ model, status, ttfbMs, durationMs, inputTokens, outputTokens }) {
      const totals = findTotals(model)
      totals.calls[STATUS_INDEX[status]]! += 1
      if (ttfbMs !== null) observe(TTFB_BOUNDS_SECONDS, totals.ttfb, ttfbMs / MS_PER_SECOND)
      observe(DURATION_BOUNDS_SECONDS, totals.duration, durationMs / MS_PER_SECOND)
      totals.inputTokens += inputTokens
      totals.outputTokens += outputTokens
    },
    channels(read) {
      channelCounts.push(read)
    },
    inFlight(change) {
      inFlightCalls += change
    },
    observe(name, read, labels = {}) {
      readers.get(name)!.push({ read, labels })
    },
    readings: () => [
      { name: IN_FLIGHT, labels: {}, value: inFlightCalls },
      ...[...readers].flatMap(([name, all]) =>
        all.flatMap(({ read, labels }) => {
          const value = reading(read)
          return value === null ? [] : [{ name, labels, value }]
        }),
      ),
    ],
    snapshot: async () => (await registry.getMetricsAsJSON()).map(readable),
    text: () => registry.metrics(),
  }
}

function registerCalls(register: Register, models: ReadonlyMap<string, ModelTotals>): void {
  const rows = <T>(listValues: (totals: ModelTotals, model: string) => T[]) =>
    [...models].flatMap(([model, totals]) => listValues(totals, model))

  register('tollgate_calls_total', 'Ended calls.', 'counter', () =>
    rows(({ calls }, model) =>
      CALL_STATUSES.map((status, index) => ({ labels: { model, status }, value: calls[index]! })).filter(
        ({ value }) => value > 0,
      ),
    ),
  )
  register('tollgate_tokens_total', 'Tokens of ended calls.', 'counter', () =>
    rows(({ inputTokens, outputTokens }, model) => [
      { labels: { model, direction: 'input' }, value: inputTokens },
      { labels: { model, direction: 'output' }, value: outputTokens },
    ]),
  )
  const ttfb = 'tollgate_time_to_first_byte_seconds'
  const ttfbHelp = 'From the request to the first byte sent to the client.'
  register(ttfb, ttfbHelp, 'histogram', () =>
    rows((totals, model) => toSamples(ttfb, TTFB_BOUNDS_SECONDS, totals.ttfb, { model })),
  )
  const duration = 'tollgate_call_duration_seconds'
  const durationHelp = 'From the request to the end of the call.'
  register(duration, durationHelp, 'histogram', () =>
    rows((totals, model) => toSamples(duration, DURATION_BOUNDS_SECONDS, totals.duration, { model })),
  )
}

function registerProcess(registry: Registry, version: string, inFlight: () => number): void {
  new Gauge({
    name: IN_FLIGHT,
    help: 'Calls that have begun and not ended.',
    registers: [registry],
    collect() {
      this.set(inFlight())
    },
  })
  new Gauge({
    name: 'tollgate_build_info',
    help: 'Always 1; the version is in the label.',
    labelNames: ['version'],
    registers: [registry],
    aggregator: 'first',
  }).set({ version }, 1)
}

/** Registers the default metrics of prom-client; those of the event loop only where it is measured. */
function registerDefaults(registry: Registry, hasStreams: boolean): void {
  collectDefaultMetrics({
    register: registry,
    eventLoopMonitoringPrecision: hasStreams ? WATCH_MS : NEVER_MS,
  })
  if (hasStreams) return registerEventLoop(registry)
  for (const { name } of registry.getMetricsAsArray())
    if (name.startsWith('nodejs_eventloop_lag')) registry.removeSingleMetric(name)
}

/** Measured by prom-client since the last scrape, and set before later metrics are read. */
const EVENT_LOOP_QUANTILES = [
  ['0.5', 'nodejs_eventloop_lag_p50_seconds'],
  ['0.99', 'nodejs_eventloop_lag_p99_seconds'],
  ['1', 'nodejs_eventloop_lag_max_seconds'],
] as const

/**
 * Registers the delay of the event loop since the last scrape. A separate monitor would wake an idle process as often
 * again.
 */
function registerEventLoop(registry: Registry): void {
  const period = WATCH_MS / MS_PER_SECOND
  new Gauge({
    name: 'tollgate_event_loop_delay_seconds',
    help: 'How late timers of the event loop ran since the last scrape.',
    labelNames: ['quantile'],
    registers: [registry],
    aggregator: 'max',
    async collect() {
      for (const [quantile, name] of EVENT_LOOP_QUANTILES) {
        const measured = await registry.getSingleMetric(name)!.get()
        // The timer's own period is part of it; it is 0 where nothing was measured yet.
        this.set({ quantile }, Math.max(0, (measured.values[0]?.value ?? 0) - period))
      }
    },
  })
}

interface Reader {
  readonly read: () => number | null
  readonly labels: Readonly<Record<string, string>>
}

function registerGauges(registry: Registry): ReadonlyMap<GaugeName, Reader[]> {
  const readers = new Map<GaugeName, Reader[]>()
  for (const name of GAUGE_NAMES) {
    const own: Reader[] = []
    readers.set(name, own)
    const { help, labels, across } = GAUGES[name]
    new Gauge({
      name,
      help,
      labelNames: [...labels],
      registers: [registry],
      aggregator: across,
      collect() {
        this.reset()
        // Without labels a reset leaves a 0, which would pass for a reading.
        if (labels.length === 0) this.remove()
        for (const reader of own) {
          const value = reading(reader.read)
          if (value !== null) this.set(reader.labels, value)
        }
      },
    })
  }
  return readers
}

function reading(read: () => number | null): number | null {
  try {
    return read()
  } catch {
    return null
  }
}
