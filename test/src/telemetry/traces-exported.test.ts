import t, { type Test } from 'tap'
import { parseTraceparent, traceparentFor } from '../../../src/telemetry/trace-context.ts'
import type { TracedCall } from '../../../src/telemetry/tracer.ts'
import { startTracing } from '../../../src/telemetry/tracing.ts'
import { serveHttp, textOf } from '../../support/http-server.ts'

interface OtlpSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: { key: string; value: { stringValue?: string; intValue?: number; boolValue?: boolean } }[]
  events: { name: string; timeUnixNano: string }[]
  status: { code: number }
}

interface Received {
  path: string | undefined
  body: {
    resourceSpans: { resource: { attributes: OtlpSpan['attributes'] }; scopeSpans: { spans: OtlpSpan[] }[] }[]
  }
}

/** A collector of OTLP over HTTP, as JSON. */
async function collector(t: Test): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = []
  const url = await serveHttp(t, async (request, response) => {
    received.push({ path: request.url, body: JSON.parse(await textOf(request)) })
    response.setHeader('content-type', 'application/json').end('{}')
  })
  return { url, received }
}

const spansOf = (received: Received[]) =>
  received.flatMap(({ body }) =>
    body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((s) => s.spans)),
  )

const plain = (attributes: OtlpSpan['attributes']) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

const START_MS = 1_800_000_000_000

const CALL: TracedCall = {
  requestId: 'req_1',
  method: 'POST',
  route: '/v1/chat/completions',
  httpStatus: 200,
  status: 'success',
  errorCode: null,
  model: 'sonata-large',
  stream: true,
  inputTokens: 11,
  outputTokens: 22,
  startMs: START_MS,
  endMs: START_MS + 2_500.5,
  ttfbMs: 250,
  attempts: [
    {
      seq: 1,
      channelId: 'one',
      startMs: START_MS + 1,
      endMs: START_MS + 90,
      httpStatus: 500,
      errorCode: 'upstream_error',
    },
    {
      seq: 2,
      channelId: 'two',
      startMs: START_MS + 91,
      endMs: START_MS + 2_500,
      httpStatus: 200,
      errorCode: null,
    },
  ],
}

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const PARENT_ID = 'b7ad6b7169203331'
const failOn = (t: Test) => (message: string) => t.fail(message)

t.test('nothing is loaded or sent without an endpoint', async (t) => {
  t.equal(await startTracing({}, '1', failOn(t)), null)
  t.equal(await startTracing({ OTEL_EXPORTER_OTLP_ENDPOINT: '' }, '1', failOn(t)), null)
  const disabled = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_SDK_DISABLED: 'true' }
  t.equal(await startTracing(disabled, '1', failOn(t)), null)
})

t.test('a call becomes one server span with a client span for each attempt', async (t) => {
  const { url, received } = await collector(t)
  const tracer = await startTracing({ OTEL_EXPORTER_OTLP_ENDPOINT: `${url}/` }, '1.2.3', failOn(t))
  if (!tracer) throw new Error('no tracer')
  const context = tracer.begin(`00-${TRACE_ID}-${PARENT_ID}-01`)
  const toUpstream = [1, 2].map((seq) => parseTraceparent(traceparentFor(context, seq)))
  tracer.call(context, CALL)
  await tracer.close()

  t.equal(received[0]?.path, '/v1/traces')
  t.match(plain(received[0]?.body.resourceSpans[0]?.resource.attributes ?? []), {
    'service.name': 'tollgate',
    'service.version': '1.2.3',
  })
  const [server, first, second, ...rest] = spansOf(received)
  if (!server || !first || !second) throw new Error('spans are missing')
  t.same(rest, [])
  t.match(server, { traceId: TRACE_ID, parentSpanId: PARENT_ID, name: 'POST /v1/chat/completions', kind: 2 })
  t.equal(server.spanId, context.spanId)
  t.equal(server.startTimeUnixNano, '1800000000000000000')
  t.equal(server.endTimeUnixNano, '1800000002500500000')
  t.match(server.events, [{ name: 'first byte', timeUnixNano: '1800000000250000000' }])
  t.match(plain(server.attributes), {
    'http.response.status_code': 200,
    'tollgate.request_id': 'req_1',
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': 'sonata-large',
    'gen_ai.usage.input_tokens': 11,
    'gen_ai.usage.output_tokens': 22,
  })
  t.equal(server.status.code, 0)
  for (const [index, span] of [first, second].entries()) {
    t.match(span, { traceId: TRACE_ID, parentSpanId: server.spanId, name: 'chat sonata-large', kind: 3 })
    t.equal(span.spanId, toUpstream[index]?.spanId, 'the upstream got this span')
    t.equal(toUpstream[index]?.traceId, TRACE_ID)
  }
  t.match(plain(first.attributes), { 'tollgate.channel': 'one', 'error.type': 'upstream_error' })
  t.equal(first.status.code, 2)
  t.match(plain(second.attributes), { 'tollgate.channel': 'two', 'gen_ai.usage.output_tokens': 22 })
})

t.test('a failed call without a parent begins a trace of its own', async (t) => {
  const { url, received } = await collector(t)
  const tracer = await startTracing({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/otlp` }, '1', failOn(t))
  if (!tracer) throw new Error('no tracer')
  const contexts = ['', 'garbage', `00-${'0'.repeat(32)}-${PARENT_ID}-01`].map((header) =>
    tracer.begin(header),
  )
  for (const context of contexts)
    tracer.call(context, {
      ...CALL,
      status: 'error',
      errorCode: 'upstream_timeout',
      httpStatus: 504,
      attempts: [],
    })
  await tracer.close()
  const spans = spansOf(received)
  t.equal(received[0]?.path, '/otlp')
  t.equal(new Set(spans.map(({ traceId }) => traceId)).size, 3)
  for (const span of spans) {
    t.notOk(span.parentSpanId)
    t.equal(span.status.code, 2)
    t.match(plain(span.attributes), { 'error.type': 'upstream_timeout' })
  }
})

t.test('what the caller does not sample is not sent, and the upstream gets the flag', async (t) => {
  const { url, received } = await collector(t)
  const tracer = await startTracing({ OTEL_EXPORTER_OTLP_ENDPOINT: url }, '1', failOn(t))
  if (!tracer) throw new Error('no tracer')
  const context = tracer.begin(`00-${TRACE_ID}-${PARENT_ID}-00`)
  tracer.call(context, CALL)
  t.match(traceparentFor(context, 1), new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-00$`))
  await tracer.close()
  t.same(received, [])
})

t.test('OTEL_TRACES_SAMPLER is respected', async (t) => {
  const begin = async (env: Record<string, string>, header: string) => {
    const tracer = await startTracing(
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', ...env },
      '1',
      failOn(t),
    )
    const sampled = tracer?.begin(header).sampled
    await tracer?.close()
    return sampled
  }
  const unsampled = `00-${TRACE_ID}-${PARENT_ID}-00`
  t.equal(await begin({ OTEL_TRACES_SAMPLER: 'always_off' }, ''), false)
  t.equal(await begin({ OTEL_TRACES_SAMPLER: 'always_on' }, unsampled), true)
  t.equal(await begin({ OTEL_TRACES_SAMPLER: 'parentbased_always_on' }, unsampled), false)
  t.equal(await begin({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' }, ''), false)
})

t.test('an unreachable collector is reported and harms nothing', async (t) => {
  const problems: string[] = []
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_EXPORTER_OTLP_TIMEOUT: '100' }
  const tracer = await startTracing(env, '1', (message) => problems.push(message))
  if (!tracer) throw new Error('no tracer')
  tracer.call(tracer.begin(''), CALL)
  await tracer.close()
  t.not(problems.length, 0)
})

t.test('traceparent by the letter of W3C Trace Context', async (t) => {
  const good = `00-${TRACE_ID}-${PARENT_ID}-01`
  t.same(parseTraceparent(good), { traceId: TRACE_ID, spanId: PARENT_ID, sampled: true })
  t.same(parseTraceparent(`cc-${TRACE_ID}-${PARENT_ID}-03-more`)?.sampled, true, 'a later version')
  for (const bad of [
    `00-${TRACE_ID}-${PARENT_ID}-01-more`,
    `ff-${TRACE_ID}-${PARENT_ID}-01`,
    `00-${TRACE_ID.toUpperCase()}-${PARENT_ID}-01`,
    `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
    `00-${TRACE_ID}-${PARENT_ID}`,
    '',
  ])
    t.equal(parseTraceparent(bad), null, bad)
})
