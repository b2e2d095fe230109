import { createConnection } from 'node:net'
import t, { type Test } from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import type { LentService, LogJson } from '../../support/service.ts'
import { callConfig, chatRaw, errorOf, rowOf, say, secretsIn, traceOf, upstreamCalls } from '../support.ts'

const MAX_BODY_BYTES = 32 * 1024 * 1024
const TRACE = /^req_[0-9A-HJKMNP-TV-Z]{26}$/
const MESSAGES = JSON.stringify(say('hi'))

/** Bodies that are refused, and what the message must say. */
const INVALID: readonly (readonly [body: string, message: RegExp])[] = [
  ['', /body is empty/],
  ['{"model":"fast","messages":', /not valid JSON/],
  ['{"model":"fast" "messages":[]}', /not valid JSON/],
  ['\u{feff}{}', /not valid JSON/],
  ['[]', /expected object/],
  ['null', /expected object/],
  ['"fast"', /expected object/],
  [`{"messages":${MESSAGES}}`, /'model'/],
  [`{"model":"","messages":${MESSAGES}}`, /'model'/],
  [`{"model":7,"messages":${MESSAGES}}`, /'model'/],
  ['{"model":"fast"}', /'messages'/],
  ['{"model":"fast","messages":{}}', /'messages'/],
  ['{"model":"fast","messages":"hi"}', /'messages'/],
  ['{"model":"fast","messages":[]}', /'messages'/],
  ['{"model":"fast","messages":["hi"]}', /'messages\[0\]'/],
  ['{"model":"fast","messages":[{"role":"robot","content":"hi"}]}', /'messages\[0\]\.role'/],
  [
    `{"model":"fast","messages":[${MESSAGES.slice(1, -1)},{"role":"user","content":7}]}`,
    /'messages\[1\]\.content'/,
  ],
  [`{"model":"fast","messages":${MESSAGES},"temperature":3}`, /'temperature'/],
  [`{"model":"fast","messages":${MESSAGES},"temperature":-0.1}`, /'temperature'/],
  [`{"model":"fast","messages":${MESSAGES},"temperature":"1"}`, /'temperature'/],
  [`{"model":"fast","messages":${MESSAGES},"stream":"true"}`, /'stream'/],
  [`{"model":"fast","messages":${MESSAGES},"max_tokens":0}`, /'max_tokens'/],
  [`{"model":"fast","messages":${MESSAGES},"max_tokens":1.5}`, /'max_tokens'/],
  [`{"model":"fast","messages":${MESSAGES},"max_tokens":1e300}`, /'max_tokens'/],
  [`{"model":"fast","messages":${MESSAGES},"max_completion_tokens":-1}`, /'max_completion_tokens'/],
  [`{"model":"fast","messages":${MESSAGES},"n":0}`, /'n'/],
  [`{"model":"fast","messages":${MESSAGES},"tools":{}}`, /'tools'/],
  [`{"model":"fast","messages":${MESSAGES},"tools":[{}]}`, /'tools\[0\]\.type'/],
  [`{"model":"fast","messages":${MESSAGES},"stream_options":true}`, /'stream_options'/],
  [`{"model":"fast","messages":${MESSAGES},"response_format":"json"}`, /'response_format'/],
  [
    `{"model":"fast","messages":${MESSAGES},"model":"other"}`,
    /'model' is not valid: it occurs more than once/,
  ],
  [
    `{"model":"fast","messages":${MESSAGES},"m\\u006fdel":"other"}`,
    /'model' is not valid: it occurs more than once/,
  ],
  [
    `{"model":"fast","messages":${MESSAGES},"messages":[{"role":"user","content":"hi"}]}`,
    /'messages' is not valid: it occurs more/,
  ],
]

/** What every response carries, whatever it says. */
function checkCommon(t: Test, response: Response): void {
  t.match(response.headers.get('x-gateway-trace'), TRACE)
  t.equal(response.headers.get('access-control-allow-origin'), '*')
  const exposed = (response.headers.get('access-control-expose-headers') ?? '').split(', ')
  for (const name of [
    'x-gateway-trace',
    'retry-after',
    'x-ratelimit-limit',
    'idempotency-replayed',
    'x-protocol-translation',
  ])
    t.ok(exposed.includes(name), name)
}

/** Sends a head, then the body piece by piece for as long as it is taken; everything that comes back. */
function rawRequest(service: LentService, head: string, piece: Buffer, pieces: number): Promise<string> {
  const { hostname, port } = new URL(service.baseUrl)
  return new Promise((resolve) => {
    let answer = ''
    const socket = createConnection({ host: hostname, port: Number(port) })
    const finish = () => {
      socket.destroy()
      resolve(answer)
    }
    let sent = 0
    const send = () => {
      while (sent++ < pieces) if (!socket.write(piece)) return socket.once('drain', send)
      return socket
    }
    socket.on('data', (bytes) => {
      answer += bytes.toString('latin1')
      // The whole error, braces closed: the connection may well stay open.
      if (answer.includes('}}')) finish()
    })
    socket.on('error', finish)
    socket.on('close', finish)
    socket.write(head)
    send()
  })
}

t.test('refusals', async (t) => {
  const service = await borrowService(t, callConfig({ fast: { simulate: 'tokens=2' } }))
  const { key } = await service.newKey('1000000')

  await t.test('a malformed body is 400, the message names the field, and a row is left', async (t) => {
    const traces: string[] = []
    for (const [body, message] of INVALID) {
      const response = await chatRaw(service, key, body)
      t.equal(response.status, 400, body)
      checkCommon(t, response)
      t.match(response.headers.get('content-type'), /^application\/json/)
      traces.push(traceOf(response))
      const text = await response.text()
      t.match(
        text,
        /^\{"error":\{"message":".+","type":"invalid_request_error","code":"invalid_request"\}\}$/,
      )
      t.match((JSON.parse(text) as { error: { message: string } }).error.message, message)
    }
    const rows = await service.logs(key, (found) => found.length === INVALID.length)
    t.same(rows.map(({ request_id }) => request_id).sort(), [...traces].sort())
    for (const row of rows)
      t.match(row, {
        status: 'rejected',
        error_code: 'invalid_request',
        cost: '0',
        attempts_count: 0,
        attempts: { length: 0 },
      })
    t.same(await upstreamCalls(service), [])
  })

  await t.test('what the upstream alone can judge is let through', async (t) => {
    const unknown =
      '"future_field":{"a":[1]},"logit_bias":{"50256":-100},"user":null,"temperature":null,"tools":null'
    const response = await chatRaw(service, key, `{"model":"fast","messages":${MESSAGES},${unknown}}`)
    t.equal(response.status, 200)
    const parts = '[{"role":"developer","content":[{"type":"text","text":"hi"},{"type":"new_kind","x":1}]}]'
    t.equal((await chatRaw(service, key, `{"model":"fast","messages":${parts}}`)).status, 200)
  })

  await t.test('an unknown path is 404, a wrong method 405 with what is allowed', async (t) => {
    for (const path of ['/nothing', '/v1', '/v1/chat/completions/', '/V1/models', '/v1/%6dodels']) {
      const response = await fetch(service.baseUrl + path, { method: 'PUT' })
      t.equal(response.status, 404, path)
      checkCommon(t, response)
      t.match(await errorOf(response), { code: 'not_found', type: 'invalid_request_error', message: String })
    }
    const wrong: readonly (readonly [method: string, path: string, allow: string])[] = [
      ['GET', '/v1/chat/completions', 'POST'],
      ['DELETE', '/v1/chat/completions', 'POST'],
      ['POST', '/v1/models', 'GET, HEAD'],
      ['POST', '/v1/logs', 'GET, HEAD'],
      ['PATCH', '/v1/key/balance', 'GET, HEAD'],
    ]
    for (const [method, path, allow] of wrong) {
      const response = await fetch(service.baseUrl + path, { method })
      t.equal(response.status, 405, `${method} ${path}`)
      t.equal(response.headers.get('allow'), allow)
      checkCommon(t, response)
      t.match(await errorOf(response), { code: 'method_not_allowed', type: 'invalid_request_error' })
    }
  })

  await t.test('the shape of an error is that of the protocol the path belongs to', async (t) => {
    const errorAt = async (path: string) => (await fetch(service.baseUrl + path, { method: 'TRACE1' })).json()
    t.match(await errorAt('/v1/messages/nothing'), {
      type: 'error',
      error: { type: 'not_found_error', message: String },
    })
    t.match(await errorAt('/v1beta/nothing'), { error: { code: 404, status: 'NOT_FOUND', message: String } })
  })

  await t.test('every path answers a preflight, with 204 and nothing', async (t) => {
    for (const path of ['/v1/chat/completions', '/v1/models', '/nowhere']) {
      const response = await fetch(service.baseUrl + path, {
        method: 'OPTIONS',
        headers: { origin: 'https://app.example', 'access-control-request-method': 'POST' },
      })
      t.equal(response.status, 204)
      t.equal(await response.text(), '')
      checkCommon(t, response)
      t.match(response.headers.get('access-control-allow-methods'), /POST/)
      t.match(response.headers.get('access-control-allow-headers'), /authorization/)
    }
  })

  await t.test('a body of 32 MiB is read, a byte more is 413, told or not', async (t) => {
    const head = `{"model":"fast","messages":${MESSAGES},"padding":"`
    const largest = Buffer.alloc(MAX_BODY_BYTES, 'x')
    largest.write(head)
    largest.write('"}', MAX_BODY_BYTES - 2)
    const fits = await chatRaw(service, key, largest)
    t.equal(fits.status, 200)
    await fits.text()

    const line = (length: string) =>
      `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${key}\r\n${length}\r\n\r\n`
    const tooLarge = (answer: string) => {
      t.match(answer, /^HTTP\/1\.1 413 Content Too Large\r\n/)
      t.match(answer, /\r\nx-gateway-trace: req_/)
      t.match(
        answer,
        '{"error":{"message":"The request body is larger than 32 MiB.","type":"invalid_request_error","code":"request_too_large"}}',
      )
    }
    tooLarge(await rawRequest(service, line(`content-length: ${MAX_BODY_BYTES + 1}`), Buffer.alloc(0), 0))
    const chunk = Buffer.alloc(1024 * 1024, 'x')
    const chunked = Buffer.concat([Buffer.from('100000\r\n'), chunk, Buffer.from('\r\n')])
    tooLarge(await rawRequest(service, line('transfer-encoding: chunked'), chunked, 33))
    t.equal((await fetch(`${service.baseUrl}/healthz`)).status, 200, 'and the service lives')
  })

  await t.test('the trace of a response finds its row', async (t) => {
    const refused = await service.chat(key, { model: 'unheard-of', messages: say('hi') })
    const answered = await service.chat(key, { model: 'fast', messages: say('hi'), stream: true })
    await answered.text()
    const row = (response: Response): Promise<LogJson> => rowOf(service, key, traceOf(response))
    t.match(await row(refused), {
      status: 'rejected',
      error_code: 'model_not_found',
      request_id: traceOf(refused),
    })
    t.match(await row(answered), { status: 'success', error_code: null, request_id: traceOf(answered) })
    checkCommon(t, answered)
  })

  t.same(secretsIn(service, [key]), [], 'nothing secret was logged')
})
