import t, { type Test } from 'tap'
import { closedPort } from '../../support/http-server.ts'
import { borrowService } from '../../support/lend-services.ts'
import { eventually, type LogJson } from '../../support/service.ts'
import {
  balanceOf,
  callConfig,
  errorOf,
  rowOf,
  rowsOf,
  say,
  secretsIn,
  traceOf,
  UPSTREAM_KEY,
  upstreamCalls,
} from '../support.ts'

/** Status, code and type of each. */
const STATUSES = [
  [400, 'invalid_request', 'invalid_request_error'],
  [401, 'invalid_api_key', 'authentication_error'],
  [402, 'upstream_error', 'api_error'],
  [403, 'permission_denied', 'permission_error'],
  [404, 'not_found', 'invalid_request_error'],
  [408, 'upstream_error', 'api_error'],
  [418, 'upstream_error', 'api_error'],
  [422, 'invalid_request', 'invalid_request_error'],
  [429, 'rate_limit_exceeded', 'rate_limit_error'],
  [500, 'upstream_error', 'api_error'],
  [503, 'upstream_error', 'api_error'],
  [529, 'upstream_error', 'api_error'],
] as const

/** Those that are about the request: their rows are rejected. */
const ABOUT_REQUEST: readonly number[] = [400, 422]

/** What the upstream says of the channel's own key. */
const ABOUT_ACCESS = [401, 402, 403]

const MODELS = {
  ...Object.fromEntries(
    STATUSES.map(([status]) => [`status-${status}`, { simulate: `fault=status:${status}` }]),
  ),
  ...Object.fromEntries(ABOUT_ACCESS.map((status) => [`hidden-${status}`, { served: false }])),
  waits: { simulate: 'fault=status:429,retry_after=17' },
  garbage: { simulate: 'fault=garbage' },
  resets: { simulate: 'fault=reset:head' },
  refuses: { simulate: 'fault=refuse' },
  first_event: { simulate: 'fault=stream_error' },
  empty: { simulate: 'fault=truncate:0' },
  unreachable: { served: false },
  silent: { served: false },
  stalls: { served: false },
}
/** Within it even a slow machine brings some of a stream that stalls. */
const TIMEOUT_SECONDS = 3

const moreChannels = (port: number): string =>
  [
    '  - id: line-nobody-listens-on',
    '    protocol: chat-completions',
    `    base_url: http://127.0.0.1:${port}/v1`,
    `    api_key: ${UPSTREAM_KEY}`,
    '    models: { unreachable: any }',
    '  - id: line-of-little-patience',
    '    protocol: chat-completions',
    '    base_url: ${TEST_SIMULATOR_URL}/v1',
    `    api_key: ${UPSTREAM_KEY}`,
    `    timeout_seconds: ${TIMEOUT_SECONDS}`,
    '    models: { silent: "sim-silent@fault=hang", stalls: "sim-stalls@tokens=200,fault=hang:2000" }',
    '  - id: line-that-hides',
    '    protocol: chat-completions',
    '    base_url: ${TEST_SIMULATOR_URL}/v1',
    `    api_key: ${UPSTREAM_KEY}`,
    '    hide_auth_errors: true',
    '    models:',
    ...ABOUT_ACCESS.map((status) => `      hidden-${status}: "sim-any@fault=status:${status},retry_after=3"`),
    '',
  ].join('\n')

t.test("an upstream's failure", async (t) => {
  const service = await borrowService(t, callConfig(MODELS) + moreChannels(await closedPort()))
  const { key } = await service.newKey('1000000')
  const rows: LogJson[] = []
  const ask = async (model: string, stream: boolean) => {
    const response = await service.chat(key, { model, messages: say('hi'), stream })
    return { response, error: await errorOf(response), trace: traceOf(response) }
  }
  /** What the row of each request must be. */
  const checkRows = async (t: Test, expected: ReadonlyMap<string, object>) => {
    const found = await rowsOf(service, key, [...expected.keys()])
    for (const row of found) {
      t.match(row, { cost: '0', output_tokens: 0, error_message: String, ...expected.get(row.request_id) })
      // One attempt; two where a kept connection broke, which may have been an old one.
      const attempts = row.attempts as { seq: number; error_code: string; error_message: string }[]
      const seqs = attempts.map(({ seq }) => seq)
      t.same(seqs, [1, 2].slice(0, row.attempts_count!))
      t.match(attempts.at(-1), { error_code: row.error_code, error_message: row.error_message })
    }
    rows.push(...found)
  }

  await t.test('keeps its status and its message, under the name of that status', async (t) => {
    const expected = new Map<string, object>()
    for (const [status, code, type] of STATUSES)
      for (const stream of [false, true]) {
        const { response, error, trace } = await ask(`status-${status}`, stream)
        t.equal(response.status, status)
        t.same({ code: error.code, type: error.type }, { code, type }, String(status))
        t.notMatch(error.message, /[{}]/, 'the message is unwrapped')
        t.match(
          error.message,
          /failure with status|Rate limit reached|had an error/,
          "and the upstream's own",
        )
        t.match(response.headers.get('content-type'), /^application\/json/)
        t.equal(response.headers.get('access-control-allow-origin'), '*')
        t.equal(response.headers.get('x-content-type-options'), 'nosniff')
        const kind = ABOUT_REQUEST.includes(status) ? 'rejected' : 'error'
        expected.set(trace, { status: kind, error_code: code })
      }
    await checkRows(t, expected)
  })

  await t.test(
    "about the key of a channel that hides it is 502, and its words are the operators'",
    async (t) => {
      const expected = new Map<string, object>()
      for (const status of ABOUT_ACCESS)
        for (const stream of [false, true]) {
          const { response, error, trace } = await ask(`hidden-${status}`, stream)
          t.equal(response.status, 502, String(status))
          t.match(error, { code: 'upstream_error', type: 'api_error', message: /refused the access/ })
          t.notMatch(error.message, /simulat/i)
          t.notOk(response.headers.has('retry-after'))
          expected.set(trace, { status: 'error', error_code: 'upstream_error', error_message: error.message })
        }
      await checkRows(t, expected)
    },
  )

  await t.test('passes on when to try again, and no limits of ours', async (t) => {
    const { response } = await ask('waits', false)
    t.equal(response.status, 429)
    t.equal(response.headers.get('retry-after'), '17')
    t.same(
      [...response.headers.keys()].filter((name) => name.startsWith('x-ratelimit')),
      [],
    )
  })

  await t.test('to connect, or to speak HTTP, is 502', async (t) => {
    const expected = new Map<string, object>()
    for (const model of ['unreachable', 'garbage', 'resets', 'refuses']) {
      const { response, error, trace } = await ask(model, true)
      t.equal(response.status, 502, model)
      t.same(error, {
        message: 'The connection to the upstream failed.',
        type: 'api_error',
        code: 'upstream_unreachable',
      })
      expected.set(trace, { status: 'error', error_code: 'upstream_unreachable' })
    }
    await checkRows(t, expected)
  })

  await t.test('that comes as no event at all is 502', async (t) => {
    const { response, error, trace } = await ask('empty', true)
    t.equal(response.status, 502)
    t.match(error, { type: 'api_error', code: 'upstream_error' })
    await checkRows(t, new Map([[trace, { status: 'error', error_code: 'upstream_error' }]]))
  })

  await t.test('that comes as the first event of a 200 passes as it came', async (t) => {
    const response = await service.chat(key, { model: 'first_event', messages: say('hi'), stream: true })
    t.equal(response.status, 200)
    t.match(await response.text(), /^data: \{"error":\{.*\}\}\n\n$/)
    await checkRows(t, new Map([[traceOf(response), { status: 'error', error_code: 'upstream_error' }]]))
  })

  await t.test('to answer in time is 504, and the row says interrupted', async (t) => {
    const expected = new Map<string, object>()
    const answers = await Promise.all([false, true].map((stream) => ask('silent', stream)))
    for (const { response, error, trace } of answers) {
      t.equal(response.status, 504)
      t.same(error, {
        message: 'The upstream did not answer in time.',
        type: 'api_error',
        code: 'upstream_timeout',
      })
      expected.set(trace, { status: 'interrupted', error_code: 'upstream_timeout' })
      const letGo = async () =>
        (await upstreamCalls(service, trace)).at(-1)?.state === 'client_closed' || undefined
      t.ok(await eventually('the upstream is let go', letGo))
    }
    await checkRows(t, expected)
  })

  await t.test('to go on in time cuts the stream, billed for what was said', async (t) => {
    const response = await service.chat(key, { model: 'stalls', messages: say('hi'), stream: true })
    t.equal(response.status, 200)
    let text = ''
    const read = async () => {
      for await (const piece of response.body!) text += Buffer.from(piece).toString()
    }
    await t.rejects(read(), 'the connection is cut')
    t.not(text, '')
    t.notMatch(text, /\[DONE\]|"finish_reason":"|"error"/)
    const row = await rowOf(service, key, traceOf(response))
    t.match(row, { status: 'interrupted', error_code: 'upstream_timeout', input_tokens: 8 })
    t.ok(row.output_tokens > 0)
    t.equal(row.cost, String(row.input_tokens + 2 * row.output_tokens))
  })

  await t.test('charges nothing, and its row names neither lines, nor addresses, nor keys', async (t) => {
    const texts = JSON.stringify(rows.map(({ error_message, attempts }) => [error_message, attempts]))
    t.notMatch(texts, /127\.0\.0\.1|line-|upstream-key|sim-/)
    const free = rows.every(({ cost }) => cost === '0')
    t.ok(free && rows.length > STATUSES.length)
    const { used } = await balanceOf(service, key)
    const all = await service.logs(key, (found) => found.length >= rows.length)
    t.equal(
      Number(used),
      all.reduce((sum, { cost }) => sum + Number(cost), 0),
    )
  })

  t.same(secretsIn(service, [key]), [], 'nothing secret was logged')
})
