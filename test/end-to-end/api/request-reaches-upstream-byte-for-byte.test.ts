import { gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { eventually, until } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import {
  callConfig,
  chatRaw,
  say,
  secretsIn,
  traceOf,
  UPSTREAM_KEY,
  upstreamCalls,
  upstreamRequest,
} from '../support.ts'

const MODELS = {
  capped: { simulate: 'tokens=2', extra: 'max_output_tokens: 4096, aliases: [capped-alias]' },
  open: { simulate: 'tokens=2' },
  newer: { served: false, extra: 'max_output_tokens: 4096' },
  plain: { served: false },
  without_options: { simulate: 'tokens=2,fault=no_stream_options' },
}
const UPSTREAM_NAME = 'sim-capped@tokens=2'
const MORE = [
  '  - id: newer-fields',
  '    protocol: chat-completions',
  '    base_url: ${TEST_SIMULATOR_URL}/v1/',
  `    api_key: ${UPSTREAM_KEY}`,
  '    output_limit_field: max_completion_tokens',
  '    headers: { x-simulate: tokens=2, X-Tenant: "north 7" }',
  // The upstream has the catalog's own name: nothing is changed in it.
  '    models: { newer: sim-newer, plain: sim-plain }',
  '',
].join('\n')

/** Everything that a parser might normalise: spacing, escapes, unknown fields, numbers. */
const ODD = [
  '"messages" : [ {"role":"user",\t"content":"h\\u00e9llo \\ud83d\\ude42 \\/ \\u0000 🙂 \\"model\\":\\"x\\""} ]',
  ' "temperature": 1.0e0 ,"seed":1.0e3,"top_p":0.10, "future" : {"a":1,"b":2,"":null,"deep":[[[-0,1E+2,12345678901234567890]]]}',
  '\n"metadata":{"model":"not-this","max_tokens":1,"stream_options":{"include_usage":false}},"user":"\\u0041"',
].join(',')

interface Case {
  readonly what: string
  readonly sent: string
  readonly received: string
}

const CASES: readonly Case[] = [
  {
    what: 'only the model id and a raised output limit',
    sent: ` {"model":"capped",${ODD}}\n`,
    received: ` {"max_tokens":4096,"model":"${UPSTREAM_NAME}",${ODD}}\n`,
  },
  {
    what: 'a limit of the client stays',
    sent: `{${ODD} , "max_tokens" : 7 ,"model"  :  "capped"}`,
    received: `{${ODD} , "max_tokens" : 7 ,"model"  :  "${UPSTREAM_NAME}"}`,
  },
  {
    what: 'its synonym stays, alone',
    sent: `{"max_completion_tokens":7e0,"model":"capped",${ODD}}`,
    received: `{"max_completion_tokens":7e0,"model":"${UPSTREAM_NAME}",${ODD}}`,
  },
  {
    what: 'a limit of null is raised where it stands',
    sent: `{"model":"capped","max_tokens": null,${ODD}}`,
    received: `{"model":"${UPSTREAM_NAME}","max_tokens": 4096,${ODD}}`,
  },
  {
    what: 'an alias becomes the name that the channel knows',
    sent: `{"model":"capped\\u002dalias","max_tokens":7,${ODD}}`,
    received: `{"model":"${UPSTREAM_NAME}","max_tokens":7,${ODD}}`,
  },
  {
    what: 'a model without a ceiling is sent without a limit',
    sent: `{"model":"open",${ODD}}`,
    received: `{"model":"sim-open@tokens=2",${ODD}}`,
  },
  {
    what: 'a channel may have another name for the limit',
    sent: `{"model":"newer",${ODD}}`,
    received: `{"max_completion_tokens":4096,"model":"sim-newer",${ODD}}`,
  },
  {
    what: 'usage is asked for on a stream',
    sent: `{"model":"open","stream":true,${ODD}}`,
    received: `{"stream_options":{"include_usage":true},"model":"sim-open@tokens=2","stream":true,${ODD}}`,
  },
  {
    what: 'usage that the client asked for stays as it was written',
    sent: `{"model":"open","stream":true,"stream_options" : {"include_obfuscation":false, "include_usage" :true},${ODD}}`,
    received: `{"model":"sim-open@tokens=2","stream":true,"stream_options" : {"include_obfuscation":false, "include_usage" :true},${ODD}}`,
  },
  {
    what: 'usage that the client declined is asked for, beside its other options',
    sent: `{"model":"open","stream":true,"stream_options":{"include_obfuscation":false,"include_usage":false},${ODD}}`,
    received: `{"model":"sim-open@tokens=2","stream":true,"stream_options":{"include_obfuscation":false,"include_usage":true},${ODD}}`,
  },
  {
    what: 'options of null are none',
    sent: `{"model":"open","stream":true,"stream_options":null,${ODD}}`,
    received: `{"model":"sim-open@tokens=2","stream":true,"stream_options":{"include_usage":true},${ODD}}`,
  },
  {
    what: 'no usage is asked for without a stream',
    sent: `{"model":"open","stream":false,${ODD}}`,
    received: `{"model":"sim-open@tokens=2","stream":false,${ODD}}`,
  },
]

t.test('what the upstream receives', async (t) => {
  const service = await borrowService(t, callConfig(MODELS) + MORE)
  const { key } = await service.newKey('1000000')

  await t.test('is what the client sent, byte for byte, but for three fields', async (t) => {
    for (const { what, sent, received } of CASES) {
      const response = await chatRaw(service, key, sent)
      t.equal(response.status, 200, await response.text())
      t.equal((await upstreamRequest(service, traceOf(response))).body, received, what)
    }
  })

  await t.test('carries our credentials and not the client’s', async (t) => {
    const response = await service.chat(
      key,
      { model: 'newer', messages: say('hi') },
      {
        headers: {
          cookie: 'a=b',
          'x-forwarded-for': '10.1.2.3',
          'openai-organization': 'org-1',
          'user-agent': 'client',
        },
      },
    )
    await response.text()
    const { headers } = await upstreamRequest(service, traceOf(response))
    t.match(headers.get('authorization'), /^Bearer sha256:[0-9a-f]{64}$/)
    t.equal(headers.get('content-type'), 'application/json')
    t.equal(headers.get('accept-encoding'), 'identity')
    t.equal(headers.get('x-tenant'), 'north 7', 'the headers that the channel is configured with')
    t.equal(headers.get('x-request-id'), traceOf(response))
    t.equal(headers.get('host'), new URL(service.engines.simulatorUrl).host)
    for (const name of ['cookie', 'x-forwarded-for', 'openai-organization', 'x-api-key', 'transfer-encoding'])
      t.equal(headers.get(name), undefined, name)
    t.not(headers.get('user-agent'), 'client')
  })

  await t.test('decoded, where it came compressed', async (t) => {
    const body = `{"model":"capped", "max_tokens":3,"seed":1.0e3 ,"messages":${JSON.stringify(say('hi'))}}`
    const plain = await upstreamRequest(service, traceOf(await chatRaw(service, key, body)))
    for (const [coding, encoded] of [
      ['gzip', gzipSync(body)],
      ['zstd', zstdCompressSync(body)],
    ] as const) {
      const response = await fetch(`${service.baseUrl}/v1/chat/completions`, {
        method: 'POST',
        body: Uint8Array.from(encoded),
        headers: { authorization: `Bearer ${key}`, 'content-encoding': coding },
      })
      t.equal(response.status, 200, coding)
      const { body: sent, headers } = await upstreamRequest(service, traceOf(response))
      t.equal(sent, plain.body)
      t.equal(headers.get('content-encoding'), undefined)
    }
  })

  await t.test('has no stream options once the upstream has refused them, and only then', async (t) => {
    const stream = async (more: object) => {
      const response = await service.chat(key, {
        model: 'without_options',
        messages: say('hi'),
        stream: true,
        ...more,
      })
      await response.text()
      return response
    }
    const attempts = async (response: Response) => (await upstreamCalls(service, traceOf(response))).length
    const bogus = await stream({ stream_options: { include_usage: false, include_obfuscation: false } })
    t.equal(bogus.status, 400, 'what the client alone asked for is its own error')
    t.equal(await attempts(bogus), 1)

    const first = await stream({})
    t.equal(first.status, 200)
    t.equal(await attempts(first), 2)
    const again = await stream({})
    t.equal(again.status, 200)
    t.equal(await attempts(again), 1, 'the channel is known by now')
    t.notMatch((await upstreamRequest(service, traceOf(again))).body, '"stream_options"')
    const rows = await service.logs(key, (found) =>
      found.some(({ request_id }) => request_id === traceOf(again)),
    )
    t.ok(
      rows.find(({ request_id }) => request_id === traceOf(first))!.output_tokens > 0,
      'usage is estimated',
    )
  })

  await t.test('is cut off at once when the client leaves', async (t) => {
    const client = new AbortController()
    const body = { model: 'open', messages: say('[simulate: fault=hang]'), stream: true }
    const never = service.chat(key, body, { signal: client.signal })
    never.catch(() => {})
    const running = () =>
      upstreamCalls(service).then((calls) => calls.find(({ state }) => state === 'running'))
    const call = await eventually('the upstream is called', running)
    client.abort()
    await until('the upstream sees it', async () => (await running()) === undefined)
    t.match(await upstreamCalls(service, call!.request_id!), [{ state: 'client_closed' }])
  })

  t.same(secretsIn(service, [key]), [], 'nothing secret was logged')
})
