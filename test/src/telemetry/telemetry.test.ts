/** Logs, metrics and traces. */
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { KEY_SHOWN_CHARS } from '../../../schemas/accounts/key.ts'
import { CALL_STATUSES } from '../../../schemas/call-log/words.ts'
import { boundLine, MAX_LINE_CHARS, MAX_VALUE_CHARS } from '../../../src/telemetry/bounded-line.ts'
import { createLog, type LogOptions, type LogOutput } from '../../../src/telemetry/log.ts'
import {
  type CallObservation,
  createMetrics,
  MAX_MODEL_LABELS,
  mergeSnapshots,
} from '../../../src/telemetry/metrics.ts'
import { Scrubber } from '../../../src/telemetry/scrub.ts'
import { parseTraceparent, traceparentFor } from '../../../src/telemetry/trace-context.ts'
import type { TracedCall } from '../../../src/telemetry/tracer.ts'
import { startTracing } from '../../../src/telemetry/tracing.ts'
import { until } from '../../support/eventually.ts'
import { serveHttp, textOf } from '../../support/http-server.ts'

t.test('no secret in logs', async (t) => {
  function logTo(
    t: Test,
    more: Partial<LogOptions> = {},
  ): { log: LogOutput; lines: () => Promise<string[]> } {
    const destination = join(t.testdir(), 'log')
    const log = createLog({ level: 'info', pretty: false, destination, ...more })
    const lines = async () => {
      // The file is opened in the background.
      for (;;) {
        log.flush()
        try {
          const text = readFileSync(destination, 'utf8')
          if (text !== '') return text.trimEnd().split('\n')
        } catch {}
        await sleep(5)
      }
    }
    return { log, lines }
  }

  t.test('one JSON object a line, with time, level, message and request id', async (t) => {
    const { log, lines } = logTo(t, { fields: { role: 'gateway' } })
    log.debug({}, 'Too fine.')
    log.with({ request_id: 'req_1' }).info({ model: 'a' }, 'Call ended.')
    log.error({ err: new Error('gone') }, 'Lost.')
    log.error({ error: new Error('gone too') }, 'Lost.')
    const [first, second, third, ...rest] = (await lines()).map((line) => JSON.parse(line))
    t.match(first, { level: 'info', role: 'gateway', request_id: 'req_1', model: 'a', msg: 'Call ended.' })
    t.match(first.time, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    t.match(second, { level: 'error', err: { message: 'gone', stack: /Error: gone/ } })
    t.match(third, { level: 'error', error: { message: 'gone too', stack: /Error: gone too/ } })
    t.same(rest, [])
  })

  t.test('lines get out by themselves, also those that come during a write', async (t) => {
    const destination = join(t.testdir(), 'log')
    const log = createLog({ level: 'info', pretty: false, destination })
    // Enough to be written at once; the next one comes meanwhile.
    for (const more of ['', 'x'.repeat(5_000), '', '']) log.info({ more }, 'One more.')
    await until('all lines are written', () => readFileSync(destination, 'utf8').split('\n').length === 5)
    log.info({}, 'One more.')
    await until('the last line is written', () => readFileSync(destination, 'utf8').split('\n').length === 6)
  })

  t.test('no secret passes, wherever it stands', async (t) => {
    const { log, lines } = logTo(t)
    const secret = randomBytes(12).toString('hex')
    const key = `sk-tollgate-${randomBytes(32).toString('hex')}`
    log.hide([`plain ${secret}`])
    const cause = new Error(`connect postgres://user:${secret}@db/tollgate failed`)
    log.info(
      { headers: { authorization: `Bearer ${secret}`, 'x-api-key': secret, cookie: `a=${secret}` } },
      'a',
    )
    log.info({ rawHeaders: ['x-goog-api-key', secret, 'Authorization', `Bearer ${secret}`] }, 'b')
    log.info(
      { channel: { api_key: secret, apiKey: secret, masterKey: secret } },
      `body {"api_key":"${secret}"}`,
    )
    log.info(
      { url: `https://host/v1beta/models/x?key=${secret}&alt=sse` },
      `key sk-${secret} and sk-proj-${secret}`,
    )
    log.error({ err: new Error('Not booked.', { cause }) }, `plain ${secret}`)
    log.info(
      { body: JSON.stringify({ nested: JSON.stringify({ password: secret }) }) },
      `x-api-key: ${secret}`,
    )
    log.info({ key }, `The key ${key} was made.`)
    log.info({ TOLLGATE_MASTER_KEY: secret, S3_SECRET_ACCESS_KEY: secret }, `password=${secret}`)
    const all = await lines()
    t.equal(all.length, 8)
    for (const line of all) {
      t.doesNotThrow(() => JSON.parse(line), 'what is left is JSON')
      t.notOk(line.includes(secret), line)
      t.notOk(line.includes(key.slice(0, KEY_SHOWN_CHARS + 1)), line)
    }
    t.ok(all[6]?.includes(key.slice(0, KEY_SHOWN_CHARS)), 'as much of a key stays as may be shown')
  })

  t.test('what is no secret stays', async (t) => {
    const line = JSON.stringify({
      request_id: 'req_01JCZ0000000000000000000AB',
      input_tokens: 12,
      key_id: 'key_01JCZ0000000000000000000AB',
      key_prefix: 'sk-tollgate-0123abcd',
      url: 'https://api.example.com/v1/chat/completions',
      address: 'someone@example.com',
      msg: 'Basic checks passed: the token count is 12.',
    })
    t.equal(new Scrubber().scrub(line), line)
  })

  t.test('a long line costs no more than its length', async (t) => {
    const scrubber = new Scrubber()
    for (const piece of ['a://b:', 'sk-', 'Bearer ', 'api_key:', '\\"token', '?key', 'a-', '@', ' : ']) {
      const text = piece.repeat(200_000 / piece.length)
      t.equal(typeof scrubber.scrub(text), 'string', piece)
    }
  })

  t.test('a line for a terminal, with the error below', async (t) => {
    const { log, lines } = logTo(t, { pretty: true })
    log.warn({ err: new Error('gone'), request_id: 'req_1', count: 2 }, 'Retrying.')
    const [first = '', ...rest] = await lines()
    t.match(first, /\d\d:\d\d:\d\d\.\d{3}.* .*WARN.*Retrying\..*"request_id":"req_1","count":2/)
    t.match(rest.join('\n'), /^ +err: .*^ +Error: gone/ms)
  })

  t.test('what was logged last is written when the process ends, by exit or by an exception', async (t) => {
    const module = new URL('../../../src/telemetry/log.ts', import.meta.url)
    const run = (end: string) =>
      spawnSync(process.execPath, [
        '--input-type=module-typescript',
        '-e',
        `import { createLog } from ${JSON.stringify(module.href)}
       const log = createLog({ level: 'info' })
       for (let i = 0; i < 500; i++) log.info({ i }, 'Working.')
       log.fatal({}, 'The last line.')
       ${end}`,
      ]).stderr.toString()
    for (const end of ['process.exit(3)', 'throw new Error("crash")', '']) {
      const stderr = run(end)
      t.match(stderr, /The last line\./, end)
      t.equal(stderr.match(/Working\./g)?.length, 500, end)
    }
  })

  t.test('of secrets that live shortly the last ones are hidden', async (t) => {
    const { log, lines } = logTo(t)
    const tokens = Array.from(
      { length: 65 },
      (_, index) => `short-lived ${index} ${randomBytes(6).toString('hex')}`,
    )
    for (const token of tokens) log.hideRecent(token)
    log.info({ quoted: tokens.at(-1) }, `quoted ${tokens[1]}`)
    log.info({}, `forgotten ${tokens[0]}`)
    const text = JSON.stringify(await lines())
    t.notMatch(text, tokens.at(-1)!)
    t.notMatch(text, tokens[1]!)
    t.match(text, tokens[0]!)
  })
})

t.test('log lines are bounded', async (t) => {
  // No value of a log line is long, from a client or from anywhere else.
  const MORE = 100

  /** Logs once, and returns the line. */
  function logged(t: Test, fields: object): string {
    const destination = join(t.testdir({}), 'log')
    const log = createLog({ level: 'info', pretty: false, destination })
    log.error(fields as Record<string, unknown>, 'Failed.')
    log.flush()
    return readFileSync(destination, 'utf8')
  }

  t.test('a usual line is left as it is', async (t) => {
    const line = `${JSON.stringify({ level: 'info', msg: 'x'.repeat(100), n: 1, list: [1, 'a', null] })}\n`
    t.equal(boundLine(line), line)
  })

  t.test('a long value is cut, and says by how much', async (t) => {
    const line = logged(t, { directory: 'd'.repeat(MAX_VALUE_CHARS + MORE), short: 's' })
    const { directory, short, msg } = JSON.parse(line)
    t.equal(directory, `${'d'.repeat(MAX_VALUE_CHARS)}… (${MORE} more characters)`)
    t.same([short, msg], ['s', 'Failed.'])
    t.equal(line.at(-1), '\n')
  })

  t.test('an error with long fields and causes makes no long line', async (t) => {
    const path = '/x'.repeat(20_000)
    const cause = Object.assign(new Error(`ENAMETOOLONG: name too long, scandir '${path}'`), { path })
    const line = logged(t, {
      err: Object.assign(new Error(path, { cause }), { path }),
      list: Array(50).fill(path),
    })
    t.ok(line.length <= MAX_LINE_CHARS, `${line.length} characters`)
    t.match(JSON.parse(line), { level: 'error', msg: 'Failed.' })
  })

  t.test('neither do very many fields', async (t) => {
    const fields = Object.fromEntries(
      Array.from({ length: 5_000 }, (_, at) => [`field ${at}`, 'v'.repeat(MORE)]),
    )
    const line = logged(t, fields)
    t.ok(line.length <= MAX_LINE_CHARS, `${line.length} characters`)
    t.match(JSON.parse(line), { level: 'error', msg: 'Failed.' })
  })

  t.test('a secret at the edge of the cut does not show', async (t) => {
    const destination = join(t.testdir({}), 'log')
    const log = createLog({ level: 'info', pretty: false, destination })
    log.hide(['open sesame'])
    log.info({ text: `${'x'.repeat(MAX_VALUE_CHARS - 4)}open sesame${'y'.repeat(MORE)}` }, 'Said.')
    log.flush()
    t.notMatch(readFileSync(destination, 'utf8'), /open/)
  })

  t.test('a line that is no JSON any more becomes one', async (t) => {
    const line = boundLine(`{"a":"${'x'.repeat(MAX_VALUE_CHARS)}\n`)
    t.match(JSON.parse(line), { level: 'error', msg: 'Log line that cannot be read' })
  })
})

t.test('a closed log ends no process', async (t) => {
  const LOG = new URL('../../../src/telemetry/log.ts', import.meta.url).href

  t.test('a process whose log has no reader any more ends when it is to end', async (t) => {
    const program = `
    import { createLog } from ${JSON.stringify(LOG)}
    const log = createLog({ level: 'info' })
    process.stdin.once('data', () => {
      log.info({}, 'Ended')
      log.flush()
      process.exit(3)
    })
    process.stdout.write('ready')`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program])
    t.teardown(() => child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    child.stderr.destroy()
    child.stdin.write('end')
    const [code] = await once(child, 'exit')
    t.equal(code, 3)
  })

  t.test('every line is written, whole and in order', async (t) => {
    const path = join(t.testdir(), 'log')
    const log = createLog({ level: 'info', pretty: false, destination: path })
    const written = () => readFileSync(path, 'utf8').split('\n').slice(0, -1)
    for (let at = 0; at < 2_000; at++) {
      log.info({ at, more: at % 500 === 0 ? 'x'.repeat(10_000) : '' }, 'A line')
      if (at % 100 === 0) await new Promise(setImmediate)
    }
    while (written().length < 2_000) await new Promise((resolve) => setTimeout(resolve, 20))
    t.same(
      written().map((line) => JSON.parse(line).at),
      Array.from({ length: 2_000 }, (_, at) => at),
    )
    log.info({}, 'The last one')
    log.flush()
    t.match(written().at(-1), /The last one/)
  })
})

t.test('metrics count calls', async (t) => {
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
    metrics.call({
      ...CALL,
      status: 'rejected',
      ttfbMs: null,
      durationMs: 1,
      inputTokens: 0,
      outputTokens: 0,
    })
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
})

t.test('traces exported', async (t) => {
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
      resourceSpans: {
        resource: { attributes: OtlpSpan['attributes'] }
        scopeSpans: { spans: OtlpSpan[] }[]
      }[]
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
    t.match(server, {
      traceId: TRACE_ID,
      parentSpanId: PARENT_ID,
      name: 'POST /v1/chat/completions',
      kind: 2,
    })
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
})
