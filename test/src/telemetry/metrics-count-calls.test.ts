import t from 'tap'
import { CALL_STATUSES } from '../../../schemas/call-log/row.ts'
import {
  type CallObservation,
  createMetrics,
  MAX_MODEL_LABELS,
  mergeSnapshots,
} from '../../../src/telemetry/metrics.ts'

const CALL: CallObservation = {
  model: 'a',
  status: 'success',
  ttfbMs: 30,
  durationMs: 700,
  inputTokens: 3,
  outputTokens: 4,
}

/** The value of one series of an exposition; undefined when it is not there. */
function value(text: string, series: string): number | undefined {
  const line = text.split('\n').find((line) => line.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

t.test('calls, tokens and times by model and status', async (t) => {
  const metrics = createMetrics('1.2.3')
  metrics.call(CALL)
  metrics.call({ ...CALL, ttfbMs: 25, durationMs: 200_000 })
  metrics.call({ ...CALL, status: 'rejected', ttfbMs: null, durationMs: 1, inputTokens: 0, outputTokens: 0 })
  metrics.call({ ...CALL, model: '', status: 'rejected', ttfbMs: null })
  metrics.inFlight(1)
  metrics.inFlight(1)
  metrics.inFlight(-1)
  const text = await metrics.text()
  t.equal(value(text, 'tollgate_calls_total{model="a",status="success"}'), 2)
  t.equal(value(text, 'tollgate_calls_total{model="a",status="rejected"}'), 1)
  t.equal(value(text, 'tollgate_calls_total{model="",status="rejected"}'), 1)
  t.equal(value(text, 'tollgate_tokens_total{model="a",direction="input"}'), 6)
  t.equal(value(text, 'tollgate_tokens_total{model="a",direction="output"}'), 8)
  const ttfb = 'tollgate_time_to_first_byte_seconds'
  t.equal(value(text, `${ttfb}_bucket{model="a",le="0.01"}`), 0)
  t.equal(value(text, `${ttfb}_bucket{model="a",le="0.025"}`), 1, 'a bound belongs to its own bucket')
  t.equal(value(text, `${ttfb}_bucket{model="a",le="0.05"}`), 2)
  t.equal(value(text, `${ttfb}_count{model="a"}`), 2)
  const duration = 'tollgate_call_duration_seconds'
  t.equal(value(text, `${duration}_bucket{model="a",le="180"}`), 2)
  t.equal(value(text, `${duration}_bucket{model="a",le="+Inf"}`), 3)
  t.equal(value(text, `${duration}_sum{model="a"}`), 200.701)
  t.equal(value(text, 'tollgate_calls_in_flight'), 1)
  t.equal(value(text, 'tollgate_build_info{version="1.2.3"}'), 1)
  for (const name of [
    'process_cpu_seconds_total',
    'process_resident_memory_bytes',
    'nodejs_heap_size_used_bytes',
  ])
    t.type(value(text, name), 'number', name)
})

t.test('how late the event loop is, is measured where clients wait for it', async (t) => {
  const [gateway, settler] = [createMetrics('1.2.3', { hasStreams: true }), createMetrics('1.2.3')]
  t.notMatch(await settler.text(), /event_?loop/)
  const text = await mergeSnapshots([await gateway.snapshot(), await settler.snapshot()])
  for (const quantile of ['0.5', '0.99', '1'])
    t.type(value(text, `tollgate_event_loop_delay_seconds{quantile="${quantile}"}`), 'number')
  t.type(value(text, 'nodejs_eventloop_lag_p99_seconds'), 'number')
})

t.test('a gauge is read at each scrape, and left out when it cannot be', async (t) => {
  const metrics = createMetrics('1.2.3')
  let bytes: number | null = 10
  metrics.observe('tollgate_journal_bytes', () => bytes)
  metrics.observe('tollgate_engine_up', () => 1, { engine: 'postgres' })
  metrics.observe('tollgate_engine_up', () => 0, { engine: 'nats' })
  metrics.observe('tollgate_settlement_lag_seconds', () => {
    throw new Error('not now')
  })
  t.equal(value(await metrics.text(), 'tollgate_journal_bytes'), 10)
  bytes = 20
  const text = await metrics.text()
  t.equal(value(text, 'tollgate_journal_bytes'), 20)
  t.equal(value(text, 'tollgate_engine_up{engine="postgres"}'), 1)
  t.equal(value(text, 'tollgate_engine_up{engine="nats"}'), 0)
  t.equal(value(text, 'tollgate_settlement_lag_seconds'), undefined)
  bytes = null
  t.equal(value(await metrics.text(), 'tollgate_journal_bytes'), undefined)
})

t.test('several processes answer as one', async (t) => {
  const [one, two] = [createMetrics('1.2.3'), createMetrics('1.2.3')]
  one.call(CALL)
  two.call({ ...CALL, ttfbMs: 3000 })
  two.call({ ...CALL, model: 'b', status: 'error' })
  one.inFlight(1)
  two.inFlight(1)
  one.observe('tollgate_settlement_lag_seconds', () => 2)
  two.observe('tollgate_settlement_lag_seconds', () => 7)
  one.observe('tollgate_engine_up', () => 1, { engine: 'nats' })
  two.observe('tollgate_engine_up', () => 0, { engine: 'nats' })
  const snapshots = await Promise.all([one.snapshot(), two.snapshot()])
  const sent = structuredClone(snapshots)
  t.same(JSON.parse(JSON.stringify(sent)), snapshots, 'a snapshot passes through IPC as it is')
  const text = await mergeSnapshots(sent)
  t.equal(value(text, 'tollgate_calls_total{model="a",status="success"}'), 2)
  t.equal(value(text, 'tollgate_calls_total{model="b",status="error"}'), 1)
  t.equal(value(text, 'tollgate_time_to_first_byte_seconds_bucket{model="a",le="0.05"}'), 1)
  t.equal(value(text, 'tollgate_time_to_first_byte_seconds_bucket{model="a",le="+Inf"}'), 2)
  t.equal(value(text, 'tollgate_calls_in_flight'), 2)
  t.equal(value(text, 'tollgate_settlement_lag_seconds'), 7)
  t.equal(value(text, 'tollgate_engine_up{engine="nats"}'), 0)
})

t.test('the number of label values is bounded', async (t) => {
  const metrics = createMetrics('1.2.3')
  for (let i = 0; i < MAX_MODEL_LABELS + 500; i++) metrics.call({ ...CALL, model: `m${i}` })
  const text = await metrics.text()
  const series = text.split('\n').filter((line) => line.startsWith('tollgate_calls_total{'))
  t.equal(series.length, MAX_MODEL_LABELS + 1)
  t.equal(value(text, 'tollgate_calls_total{model="",status="success"}'), 500)
})

t.test('every status has a place', async (t) => {
  const metrics = createMetrics('1.2.3')
  for (const status of CALL_STATUSES) metrics.call({ ...CALL, status })
  const text = await metrics.text()
  for (const status of CALL_STATUSES)
    t.equal(value(text, `tollgate_calls_total{model="a",status="${status}"}`), 1)
})
