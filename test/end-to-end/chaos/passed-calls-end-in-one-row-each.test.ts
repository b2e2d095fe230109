/**
 * Embeddings, rerank, transcriptions and calls over WebSocket, whatever becomes of service, upstream and client: each call has one row
 * and one charge. See docs/failure-modes.md, "Money".
 */
import { connect as connectTcp } from 'node:net'
import t from 'tap'
import { connectTo, untilCopied, verifyWallets } from '../../support/connections.ts'
import { startService, type TestService, until } from '../../support/service.ts'
import { holdBooking, waitingForBooking } from '../media/chaos/crashes.ts'
import { configOf, simulated } from '../protocols/support.ts'
import { connect } from '../sockets/support.ts'
import { checkCharges, rowsOf, traceOf, upstreamCalls } from '../support.ts'
import { TIMEOUT_MS } from './plan.ts'

/** What an upstream does, by the end of the model's name. */
const UPSTREAMS = {
  answers: '',
  waits: 'ttft=600000',
  stops: 'fault=hang:20',
  cuts: 'fault=cut:20',
  resets: 'fault=reset:head',
  fails: 'fault=status:503',
  limits: 'fault=status:429',
  sleeps: 'ttft=600000,tag=slow',
  refuses: 'fault=status:400',
} as const
type Upstream = keyof typeof UPSTREAMS
const FAILING_OVER: readonly Upstream[] = ['resets', 'fails', 'limits']

/** A token costs 1 credit, a search 3, a second 1. */
const ENDPOINTS = {
  embed: {
    endpoint_type: 'embeddings',
    pricing: { unit: '1M_tokens', input: '1000000' },
    path: '/v1/embeddings',
    body: (model: string) => JSON.stringify({ model, input: 'x'.repeat(78) }),
    cost: '20',
  },
  rank: {
    endpoint_type: 'rerank',
    pricing: { unit: 'search', per_unit: '3' },
    path: '/v1/rerank',
    body: (model: string) => JSON.stringify({ model, query: 'x', documents: ['a', 'b'] }),
    cost: '3',
  },
  hear: {
    endpoint_type: 'audio_transcriptions',
    pricing: { unit: 'minute', per_unit: '60' },
    path: '/v1/audio/transcriptions',
    body(model: string) {
      const form = new FormData()
      form.append('model', model)
      // 28,000 bytes of an unknown format: 7 seconds, as the upstream reports.
      form.append('file', new Blob([new Uint8Array(28_000)]), 'words.raw')
      return form
    },
    cost: '7',
  },
} as const
type Endpoint = keyof typeof ENDPOINTS
const NAMES = Object.keys(ENDPOINTS) as Endpoint[]
const all = <T>(make: (endpoint: Endpoint, upstream: Upstream) => T): T[] =>
  NAMES.flatMap((endpoint) =>
    (Object.keys(UPSTREAMS) as Upstream[]).map((upstream) => make(endpoint, upstream)),
  )

const CONFIG = configOf(
  {
    ...Object.fromEntries(
      all((endpoint, upstream) => {
        const { endpoint_type, pricing } = ENDPOINTS[endpoint]
        return [`${endpoint}-${upstream}`, { endpoint_type, pricing }]
      }),
    ),
    talk: {},
  } as never,
  [
    simulated(
      'chat-completions',
      Object.fromEntries(
        all((endpoint, upstream) => [
          `${endpoint}-${upstream}`,
          `sim-${endpoint}@${UPSTREAMS[upstream]}`,
        ]).filter(([model]) => !model!.endsWith('-sleeps')),
      ),
    ),
    simulated(
      'chat-completions',
      Object.fromEntries(
        NAMES.map((endpoint) => [`${endpoint}-sleeps`, `sim-${endpoint}@${UPSTREAMS.sleeps}`]),
      ),
      { id: 'line-slow', timeout_seconds: 1 },
    ),
    simulated(
      'chat-completions',
      Object.fromEntries(
        NAMES.flatMap((endpoint) =>
          FAILING_OVER.map((upstream) => [`${endpoint}-${upstream}`, `sim-${endpoint}@tag=second`]),
        ),
      ),
      { id: 'line-second', priority: 5 },
    ),
    simulated('responses', { talk: 'sim-talk@tokens=2000,tps=20' }),
  ],
)

const send = (
  service: TestService,
  key: string,
  endpoint: Endpoint,
  upstream: Upstream,
  more: { readonly headers?: object; readonly signal?: AbortSignal } = {},
): Promise<Response> => {
  const { path, body } = ENDPOINTS[endpoint]
  const content = body(`${endpoint}-${upstream}`)
  return fetch(service.baseUrl + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      ...(typeof content === 'string' && { 'content-type': 'application/json' }),
      ...more.headers,
    },
    body: content,
    ...(more.signal && { signal: more.signal }),
  })
}

/** Upstream calls of the model that run. */
const countRunning = async (service: TestService, upstream: Upstream): Promise<number> =>
  (await upstreamCalls(service)).filter(
    ({ model, state }) => state === 'running' && model?.endsWith(`@${UPSTREAMS[upstream]}`),
  ).length

t.setTimeout(TIMEOUT_MS)
t.test('a service that is killed', async (t) => {
  const service = await startService(t, { config: CONFIG })
  const sql = connectTo(t, service.engines.databaseUrl, 3)

  for (const upstream of ['waits', 'stops'] as const)
    await t.test(`while the upstream ${upstream}`, async (t) => {
      const { key } = await service.newKey('1000000')
      const socket = await connect(t, service, key)
      socket.create({ model: 'talk', input: 'hi', store: false })
      const sent = NAMES.map((endpoint) =>
        send(service, key, endpoint, upstream, { headers: { 'idempotency-key': endpoint } }).catch(
          () => null,
        ),
      )
      await until(
        'the upstreams have the calls',
        async () => (await countRunning(service, upstream)) >= NAMES.length,
      )
      await until('it speaks', () =>
        socket.received.some(({ type }) => type === 'response.output_text.delta'),
      )
      await service.kill()
      await Promise.all(sent)
      await socket.untilClosed()
      await service.start()
      const rows = await checkCharges(t, service, key, NAMES.length + 1)
      t.same(
        rows.map(({ status, cost }) => [status, cost]),
        rows.map(() => ['interrupted', '0']),
      )
    })

  await t.test('in the middle of an upload, and behind the answer, before it is booked', async (t) => {
    const { key } = await service.newKey('1000000')
    const { hostname, port } = new URL(service.baseUrl)
    const half = connectTcp({ host: hostname, port: Number(port) })
    half.on('error', () => {})
    t.teardown(() => half.destroy())
    half.write(
      [
        'POST /v1/audio/transcriptions HTTP/1.1',
        `host: ${hostname}`,
        `authorization: Bearer ${key}`,
        'content-type: multipart/form-data; boundary=b',
        'content-length: 100000',
        '\r\n--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nhear-answers\r\n--b\r\n',
      ].join('\r\n'),
    )
    const release = await holdBooking(sql)
    const traces: string[] = []
    for (const endpoint of NAMES) {
      const answer = await send(service, key, endpoint, 'answers', {
        headers: { 'idempotency-key': endpoint },
      })
      t.equal(answer.status, 200, endpoint)
      await answer.text()
      traces.push(traceOf(answer))
    }
    await until('the settler waits', async () => (await waitingForBooking(sql)) > 0)
    await service.kill()
    await release()
    await service.start()
    const rows = await rowsOf(service, key, traces)
    t.same(
      rows.map(({ status, cost }) => [status, cost]),
      NAMES.map((endpoint) => ['success', ENDPOINTS[endpoint].cost]),
    )
    for (const endpoint of NAMES) {
      const again = await send(service, key, endpoint, 'answers', {
        headers: { 'idempotency-key': endpoint },
      })
      t.equal(again.status, 200)
      t.equal(again.headers.get('idempotency-replayed'), 'true', `${endpoint} is not carried out again`)
    }
    await checkCharges(t, service, key, NAMES.length)
  })

  await untilCopied(sql)
  t.same((await verifyWallets(service)).differences, [], 'the books of all of them agree')
})

t.test('upstreams and clients that end calls', async (t) => {
  const service = await startService(t, { config: CONFIG })
  for (const endpoint of NAMES)
    await t.test(endpoint, async (t) => {
      const { key } = await service.newKey('1000000')
      const { cost } = ENDPOINTS[endpoint]
      for (const upstream of FAILING_OVER) {
        const answer = await send(service, key, endpoint, upstream)
        t.equal(answer.status, 200, upstream)
        await answer.arrayBuffer()
        const [row] = await rowsOf(service, key, [traceOf(answer)])
        t.match(row, { status: 'success', cost, attempts_count: 2 }, upstream)
      }
      const failed: string[] = []
      for (const [upstream, status] of [
        ['cuts', 502],
        ['refuses', 400],
        // Nobody knows what an upstream has done when its time is over: none is asked again.
        ['sleeps', 504],
      ] as const) {
        const answer = await send(service, key, endpoint, upstream)
        t.equal(answer.status, status, upstream)
        await answer.arrayBuffer()
        failed.push(traceOf(answer))
      }
      t.match(await rowsOf(service, key, failed), [
        { status: 'error', cost: '0' },
        { cost: '0' },
        { status: 'interrupted', error_code: 'upstream_timeout', cost: '0', attempts_count: 1 },
      ])
      // A client that leaves owes what it asked for.
      for (const upstream of ['waits', 'stops'] as const) {
        const before = await countRunning(service, upstream)
        const left = new AbortController()
        const sent = send(service, key, endpoint, upstream, { signal: left.signal })
        await until('the upstream has the call', async () => (await countRunning(service, upstream)) > before)
        left.abort()
        await t.rejects(sent)
      }
      const rows = await checkCharges(t, service, key, FAILING_OVER.length + 5)
      t.match(rows.slice(0, 2), [
        { status: 'interrupted', cost },
        { status: 'interrupted', cost },
      ])
    })
})
