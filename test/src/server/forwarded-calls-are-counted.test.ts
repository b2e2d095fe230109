/** What metrics and log say of calls by the way they were metered. */

import t from 'tap'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { DEFAULTS } from '../../../src/core/call-log/settlement.ts'
import { countSettled } from '../../../src/server/gateway/count-settled.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'

const SETTLED = {
  ...DEFAULTS,
  model: 'fast',
  status: 'success',
  channel_id: 'primary',
  request_id: 'req_1',
  latency_ms: 5,
  ttfb_ms: 1,
} as unknown as Settlement
const USUAL = { suspect: '', reported: undefined, otherModel: '' }

t.test('calls are counted by the source of their usage, and odd answers apart', async (t) => {
  const warnings: unknown[][] = []
  const metrics = createMetrics('1')
  const count = countSettled(metrics, { warn: (...line: unknown[]) => void warnings.push(line) })
  for (const [usage_source, times] of [
    ['upstream', 3],
    ['estimate', 2],
    ['none', 1],
  ] as const)
    for (let i = 0; i < times; i++) count({ ...SETTLED, usage_source }, USUAL, 'fast-1')
  t.same(warnings, [])

  const odd = { suspect: 'output 9 > 8', reported: undefined, otherModel: 'slow-1' }
  for (let i = 0; i < 2; i++) count({ ...SETTLED, usage_source: 'upstream' }, odd, 'fast-1')
  metrics.metering.unbooked('malformed')
  const text = await metrics.text()
  const labels = 'channel="primary",model="fast"'
  for (const line of [
    `tollgate_metered_calls_total{${labels},source="upstream"} 5`,
    `tollgate_metered_calls_total{${labels},source="estimate"} 2`,
    `tollgate_usage_suspect_total{${labels}} 2`,
    `tollgate_answered_by_other_model_total{${labels}} 2`,
    'tollgate_settlements_unbooked_total{reason="malformed"} 1',
    'tollgate_settlements_unbooked_total{reason="refused"} 0',
    'tollgate_calls_total{model="fast",status="success"} 8',
  ])
    t.ok(text.includes(`${line}\n`), line)
  t.match(warnings, [
    [{ request_id: 'req_1', counts: 'output 9 > 8' }, /beyond|no call can have/],
    [{ channel: 'primary', asked: 'fast-1', answered: 'slow-1' }, /another model/],
    [{ counts: 'output 9 > 8' }, String],
  ])
  t.equal(warnings.length, 3, 'each other model is logged once')
})

t.test('labels are bounded', async (t) => {
  const metrics = createMetrics('1')
  const call = { source: 'upstream', isSuspect: false, isOtherModel: false } as const
  for (let i = 0; i < 6_000; i++) metrics.metering.metered({ ...call, channel: 'c', model: `m${i}` })
  const samples = (await metrics.text()).split('\n').filter((line) => line.startsWith('tollgate_metered_'))
  t.equal(samples.length, 5_001)
  t.ok(samples.some((line) => line.includes('channel="",model=""') && line.endsWith(' 1000')))
})
