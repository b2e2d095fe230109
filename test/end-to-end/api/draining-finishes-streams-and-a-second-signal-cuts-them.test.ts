import t from 'tap'
import { startService, type TestService, until } from '../../support/service.ts'
import {
  balanceOf,
  callConfig,
  errorOf,
  eventsIn,
  readUntil,
  rowOf,
  say,
  secretsIn,
  traceOf,
} from '../support.ts'

const MESSAGES = say('slowly, please')
const PROMPT_TOKENS = Math.ceil(JSON.stringify(MESSAGES).length / 4)
const SLOW_TOKENS = 120
const MODELS = {
  fast: { simulate: 'tokens=2' },
  slow: { simulate: `tokens=${SLOW_TOKENS},tps=40` },
  endless: { simulate: 'tokens=400,tps=20' },
}

/** Longer than usual. */
const CHAT_SECONDS = 600

const status = (service: TestService, path: string) => fetch(service.baseUrl + path).then((r) => r.status)

/** The value of each series whose line begins so. */
function series(text: string, start: string): number[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith(start))
    .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)))
}

t.test('operating the service', async (t) => {
  const config = `limits: { chat_seconds: ${CHAT_SECONDS} }\n${callConfig(MODELS)}`
  const service = await startService(t, { config, env: { LOG_LEVEL: 'trace' } })
  const { key } = await service.newKey('1000000')
  const stream = (model: string) => service.chat(key, { model, messages: MESSAGES, stream: true })
  /** It has begun: what follows has a stream open. */
  const begun = async (model: string) => {
    const response = await stream(model)
    t.equal(response.status, 200)
    return response
  }

  await t.test('health, readiness and metrics need no key, and tell no secret', async (t) => {
    t.equal(await status(service, '/healthz'), 200)
    // An engine that a loaded machine kept from one answer has not gone: the next one counts.
    await until('it is ready', async () => (await status(service, '/readyz')) === 200)
    for (const model of ['fast', 'fast', 'unheard-of']) await (await stream(model)).text()
    await service.chat(key, { model: 'unheard-of-too', messages: MESSAGES })
    const response = await fetch(`${service.baseUrl}/metrics`)
    t.match(response.headers.get('content-type'), /^text\/plain/)
    const text = await response.text()
    t.same(series(text, 'tollgate_calls_total{model="fast",status="success"}'), [2])
    t.same(series(text, 'tollgate_tokens_total{model="fast",direction="output"}'), [4])
    t.same(series(text, 'tollgate_tokens_total{model="fast",direction="input"}'), [2 * PROMPT_TOKENS])
    const rejected = text
      .split('\n')
      .filter((line) => /^tollgate_calls_total\{.*status="rejected"/.test(line))
    t.equal(
      rejected.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0),
      2,
    )
    t.notMatch(text, /unheard-of/, 'what a caller makes up is no label')
    t.same(series(text, 'tollgate_time_to_first_byte_seconds_count{model="fast"}'), [2])
    t.same(series(text, 'tollgate_calls_in_flight '), [0])
    for (const name of [
      'journal_bytes',
      'journal_unbooked',
      'event_loop_delay_seconds',
      'log_lag_seconds',
      'draining',
    ])
      t.ok(series(text, `tollgate_${name}`).length > 0, name)
    for (const secret of [key, 'upstream-key']) t.notOk(text.includes(secret))
  })

  await t.test('after a first signal, what runs goes on and nothing new begins', async (t) => {
    const response = await begun('slow')
    const stopped = service.stop('SIGTERM')
    await until('it is not ready', async () => (await status(service, '/readyz')) === 503)
    t.equal(await status(service, '/healthz'), 200)
    const refused = await stream('fast')
    t.equal(refused.status, 503)
    t.equal(refused.headers.get('retry-after'), '1')
    t.match(await errorOf(refused), { code: 'service_unavailable', type: 'server_error' })

    const events = eventsIn((await readUntil(response)).toString('utf8'))
    t.equal(events.at(-1), '[DONE]')
    t.equal(await stopped, 0)
    t.match(service.output(), `"deadline_ms":${CHAT_SECONDS * 1000}`, 'a stream gets the time of its call')
    await service.start()
    t.match(await rowOf(service, key, traceOf(response)), {
      status: 'success',
      output_tokens: SLOW_TOKENS,
      cost: String(PROMPT_TOKENS + 2 * SLOW_TOKENS),
    })
  })

  await t.test('a second signal cuts what runs: interrupted, and billed for what was said', async (t) => {
    const response = await begun('endless')
    const first = service.stop('SIGTERM')
    await until('it is not ready', async () => (await status(service, '/readyz')) === 503)
    const second = service.stop('SIGTERM')
    const text = (await readUntil(response)).toString('utf8')
    t.notMatch(text, /\[DONE\]|"finish_reason":"/)
    t.equal(await first, 0)
    t.equal(await second, 0)
    await service.start()
    const row = await rowOf(service, key, traceOf(response))
    t.match(row, { status: 'interrupted', error_code: null, input_tokens: PROMPT_TOKENS })
    t.ok(row.output_tokens > 0 && row.output_tokens < 400)
    t.equal(row.cost, String(PROMPT_TOKENS + 2 * row.output_tokens))
  })

  await t.test('and all of it adds up', async (t) => {
    const rows = await service.logs(key, (found) => found.length === 6)
    const used = rows.reduce((sum, { cost }) => sum + Number(cost), 0)
    t.equal((await balanceOf(service, key)).used, String(used))
    t.ok((await service.database.audits.verifyWallets()).ok)
  })

  t.same(secretsIn(service, [key]), [], 'nothing secret was logged')
})
