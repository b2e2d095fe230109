import t from 'tap'
import type { Teardown } from '../../support/engines.ts'
import { serveHttp, textOf } from '../../support/http-server.ts'
import { eventually, startService, testConfig } from '../../support/service.ts'
import { upstreamRequest } from '../support.ts'

interface Span {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  attributes: { key: string; value: { stringValue?: string } }[]
}

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const CLIENT_SPAN = 'b7ad6b7169203331'

/** A collector that keeps every span it is sent. */
async function startCollector(test: Teardown): Promise<{ url: string; spans: Span[] }> {
  const spans: Span[] = []
  const url = await serveHttp(test, async (request, response) => {
    const body = JSON.parse(await textOf(request)) as {
      resourceSpans: { scopeSpans: { spans: Span[] }[] }[]
    }
    spans.push(...body.resourceSpans.flatMap((r) => r.scopeSpans.flatMap((s) => s.spans)))
    response.setHeader('content-type', 'application/json').end('{}')
  })
  return { url, spans }
}

t.test('a call is a span of the caller’s trace, each attempt a child; the upstream gets it', async (t) => {
  const collector = await startCollector(t)
  const service = await startService(t, {
    config: testConfig({ fast: {} }),
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '100' },
  })
  const { key } = await service.newKey('1000000')
  const response = await service.chat(
    key,
    { model: 'fast', stream: true, messages: [{ role: 'user', content: 'hi' }] },
    { headers: { traceparent: `00-${TRACE_ID}-${CLIENT_SPAN}-01` } },
  )
  await response.text()
  const requestId = response.headers.get('x-gateway-trace')

  const call = await eventually('the call’s span has come', () =>
    collector.spans.find((span) => span.parentSpanId === CLIENT_SPAN),
  )
  t.equal(call.traceId, TRACE_ID, 'the span belongs to the caller’s trace')
  const attempt = await eventually('the attempt’s span has come', () =>
    collector.spans.find((span) => span.parentSpanId === call.spanId),
  )
  t.equal(attempt.traceId, TRACE_ID, 'so does the attempt')
  t.match(JSON.stringify(call.attributes), requestId!, 'the span names the request')

  const { headers } = await upstreamRequest(service, requestId!)
  t.equal(
    headers.get('traceparent'),
    `00-${TRACE_ID}-${attempt.spanId}-01`,
    'the upstream gets the attempt’s span',
  )
})
