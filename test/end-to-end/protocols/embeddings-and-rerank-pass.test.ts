/** Embeddings and rerank pass to the same path of a chat-completions channel, byte for byte, and cost what they use. */
import { Buffer } from 'node:buffer'
import OpenAI from 'openai'
import t from 'tap'
import { serveHttp, textOf } from '../../support/http-server.ts'
import { borrowService } from '../../support/lend-services.ts'
import { until } from '../../support/service.ts'
import {
  balanceOf,
  errorOf,
  post,
  rowOf,
  traceOf,
  UPSTREAM_KEY,
  upstreamCalls,
  upstreamRequest,
} from '../support.ts'
import { Books, configOf, simulated } from './support.ts'

/** A credit for each token. */
const TOKENS = { unit: '1M_tokens', input: '1000000' } as const
const embedding = { endpoint_type: 'embeddings', pricing: TOKENS } as const
/** A third of a credit for each search: its sums show whether anything is rounded. */
const ranking = { endpoint_type: 'rerank', pricing: { unit: 'search', per_unit: '0.33333333' } } as const

/** An upstream that answers with all but what was asked for. */
const strange = await serveHttp(t, async (request, response) => {
  const { model } = JSON.parse(await textOf(request))
  const answers: Readonly<Record<string, string>> = {
    'no-data': '{"object":"list","data":[],"usage":{"prompt_tokens":3,"total_tokens":3}}',
    page: '<html>busy</html>',
    'error-in-200': '{"error":{"message":"no"},"data":[{"embedding":[1]}]}',
    jina: '{"results":[{"index":0,"relevance_score":0.5}],"usage":{"total_tokens":9}}',
    many: '{"results":[{"index":0,"relevance_score":0.5}],"meta":{"billed_units":{"search_units":1000000}}}',
  }
  response.writeHead(200, { 'content-type': 'application/json' }).end(answers[model])
})

const CONFIG = configOf(
  {
    embed: { ...embedding, aliases: ['embed-old'], context_window: 10 },
    failing: embedding,
    unreported: embedding,
    cut: embedding,
    unserved: embedding,
    rank: ranking,
    'rank-many': ranking,
    'rank-unreported': ranking,
    'rank-falls-back': { ...ranking, fallbacks: ['rank'] },
    talk: {},
    ...Object.fromEntries(['no-data', 'page', 'error-in-200'].map((id) => [id, embedding])),
    ...Object.fromEntries(['jina', 'many'].map((id) => [id, ranking])),
  },
  [
    simulated(
      'chat-completions',
      {
        embed: 'sim-embed',
        failing: 'sim-fails@fault=status:500',
        unreported: 'sim-embed@usage=none',
        cut: 'sim-embed@ttft=60000',
        rank: 'sim-rank',
        'rank-many': 'sim-rank@searches=3',
        'rank-unreported': 'sim-rank@usage=none',
        'rank-falls-back': 'sim-rank@fault=status:503',
        talk: 'sim-talk',
      },
      { cost: { embed: { unit: '1M_tokens', input: '500000' }, rank: { unit: 'search', per_unit: '0.1' } } },
    ),
    simulated('chat-completions', { failing: 'sim-embed' }, { id: 'line-second', priority: 1 }),
    {
      ...simulated('chat-completions', {
        ...Object.fromEntries(['no-data', 'page', 'error-in-200', 'jina', 'many'].map((id) => [id, id])),
      }),
      id: `strange-${process.pid}`,
      base_url: `${strange}/v1`,
      api_key: UPSTREAM_KEY,
    },
  ],
)

const EMBEDDINGS = '/v1/embeddings'
const RERANK = '/v1/rerank'

t.test('embeddings', async (t) => {
  const service = await borrowService(t, CONFIG)
  const books = await Books.open(service)

  await t.test('pass byte for byte, but for the name of the model', async (t) => {
    for (const model of ['embed', 'embed-old']) {
      const body = `{"user":"u-1",  "input" : ["h\\u00e9llo", "wörld"],"encoding_format":"base64",\n"model": "${model}" ,"dimensions":4}`
      const response = await post(service, books.key, EMBEDDINGS, body)
      t.equal(response.status, 200)
      const trace = traceOf(response)
      const seen = await upstreamRequest(service, trace)
      t.equal(seen.body, body.replace(`"${model}"`, '"sim-embed"'))
      const [call] = await upstreamCalls(service, trace)
      t.equal(call?.path, EMBEDDINGS)
      const answer = (await response.json()) as {
        data: { embedding: string }[]
        usage: { prompt_tokens: number }
      }
      t.equal(answer.data.length, 2)
      t.equal(Buffer.from(answer.data[0]!.embedding, 'base64').length, 4 * 4)
      await books.charged(
        trace,
        { input: answer.usage.prompt_tokens, output: 0 },
        { unit_type: null, unit_count: null },
      )
    }
  })

  await t.test('are made by the SDK of the vendor', async (t) => {
    const client = new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey: books.key, maxRetries: 0 })
    for (const input of ['hello', ['hello', 'you'], [1, 2, 3], [[1, 2], [3]]]) {
      const { data, response } = await client.embeddings.create({ model: 'embed', input }).withResponse()
      t.equal(data.data.length, Array.isArray(input) && typeof input[0] !== 'number' ? input.length : 1)
      // The SDK asks for base64, and reads it.
      t.type(data.data[0]!.embedding[0], 'number')
      await books.charged(traceOf(response), { input: data.usage.prompt_tokens, output: 0 })
    }
  })

  await t.test('of a batch may be longer than the window of the model', async (t) => {
    const input = Array.from({ length: 20 }, () => [1, 2, 3, 4, 5])
    const response = await post(service, books.key, EMBEDDINGS, { model: 'embed', input })
    t.equal(response.status, 200)
    await books.charged(traceOf(response), { input: 100, output: 0 })
  })

  await t.test('without usage are estimated', async (t) => {
    const texts = await post(service, books.key, EMBEDDINGS, { model: 'unreported', input: 'x'.repeat(398) })
    t.equal(texts.status, 200)
    await books.charged(traceOf(texts), { input: 100, output: 0 })
    const tokens = await post(service, books.key, EMBEDDINGS, { model: 'unreported', input: [7, 8, 9] })
    await books.charged(traceOf(tokens), { input: 3, output: 0 })
  })

  await t.test('fail over to another channel', async (t) => {
    const response = await post(service, books.key, EMBEDDINGS, { model: 'failing', input: 'abcd' })
    t.equal(response.status, 200)
    await books.charged(traceOf(response), { input: 1, output: 0 }, { attempts_count: 2 })
  })

  await t.test('that are none are a failure of the upstream', async (t) => {
    for (const model of ['no-data', 'page', 'error-in-200']) {
      const response = await post(service, books.key, EMBEDDINGS, { model, input: 'abcd' })
      t.equal(response.status, 502, model)
      t.match(await errorOf(response), { code: 'upstream_error' })
      books.free(traceOf(response), { status: 'error' })
    }
  })

  await t.test('are charged once for each Idempotency-Key', async (t) => {
    const headers = { 'idempotency-key': 'embed-once' }
    const first = await post(service, books.key, EMBEDDINGS, { model: 'embed', input: 'abcdefgh' }, headers)
    const again = await post(service, books.key, EMBEDDINGS, { model: 'embed', input: 'abcdefgh' }, headers)
    t.equal(again.headers.get('idempotency-replayed'), 'true')
    t.equal(await again.text(), await first.text())
    await books.charged(traceOf(first), { input: 2, output: 0 })
  })

  await t.test('that their client does not wait for are charged by estimate', async (t) => {
    const abort = new AbortController()
    const sent = post(
      service,
      books.key,
      EMBEDDINGS,
      { model: 'cut', input: 'x'.repeat(78) },
      {},
      abort.signal,
    )
    let trace: string | null = null
    await until('the upstream has the call', async () => {
      const running = (await upstreamCalls(service)).find((call) => call.model?.includes('ttft=60000'))
      trace = running?.request_id ?? null
      return trace !== null
    })
    abort.abort()
    await t.rejects(sent)
    await books.charged(trace, { input: 20, output: 0 }, { status: 'interrupted' })
  })

  await t.test('are refused for other models, and in other forms', async (t) => {
    const cases = [
      [{ model: 'talk', input: 'x' }, 404, 'model_not_found'],
      [{ model: 'rank', input: 'x' }, 404, 'model_not_found'],
      [{ model: 'nothing', input: 'x' }, 404, 'model_not_found'],
      [{ model: 'unserved', input: 'x' }, 503, 'no_channel_available'],
      [{ model: 'embed' }, 400, 'invalid_request'],
      [{ model: 'embed', input: [] }, 400, 'invalid_request'],
      [{ model: 'embed', input: '' }, 400, 'invalid_request'],
      [{ model: 'embed', input: ['a', {}] }, 400, 'invalid_request'],
      [{ model: 'embed', input: [1, -1] }, 400, 'invalid_request'],
      [{ model: 'embed', input: Array(2049).fill('a') }, 400, 'invalid_request'],
      [{ model: 'embed', input: 'x', dimensions: 0 }, 400, 'invalid_request'],
      [{ model: 'embed', input: 'x', api_base: 'http://other' }, 400, 'invalid_request'],
      [{ model: 'embed', input: 'x', service_tier: 'priority' }, 400, 'invalid_request'],
    ] as const
    for (const [body, status, code] of cases) {
      const response = await post(service, books.key, EMBEDDINGS, body)
      t.equal(response.status, status, JSON.stringify(body).slice(0, 100))
      t.match(await errorOf(response), { code })
      books.free(traceOf(response), { status: 'rejected', error_code: code })
    }
    const chat = await post(service, books.key, '/v1/chat/completions', {
      model: 'embed',
      messages: [{ role: 'user', content: 'x' }],
    })
    t.equal(chat.status, 503)
    t.match((await errorOf(chat)).message, /served on embeddings \(POST \/v1\/embeddings\)/)
    books.free(traceOf(chat), { status: 'rejected' })
    const dear = await post(
      service,
      books.key,
      EMBEDDINGS,
      { model: 'embed', input: 'x'.repeat(100) },
      { 'x-max-price': '2' },
    )
    t.equal(dear.status, 400)
    t.match((await errorOf(dear)).message, /26 credits, 26 of them for the bytes of input/)
    books.free(traceOf(dear), { status: 'rejected' })
  })

  await t.test('are refused to a wallet that does not cover them', async (t) => {
    const { key } = await service.newKey('10')
    const response = await post(service, key, EMBEDDINGS, { model: 'embed', input: 'x'.repeat(100) })
    t.equal(response.status, 402)
    t.match(await balanceOf(service, key), { remaining: '10' })
  })

  await t.test('are listed with their endpoint', async (t) => {
    const { data } = (await (await service.get(books.key, '/v1/models')).json()) as { data: { id: string }[] }
    t.match(
      data.find(({ id }) => id === 'embed'),
      { endpoint_type: 'embeddings', cost: { input: 1000000, output: 0 } },
    )
    t.match(
      data.find(({ id }) => id === 'rank'),
      { endpoint_type: 'rerank', cost: {} },
    )
    t.match(
      data.find(({ id }) => id === 'talk'),
      { endpoint_type: null },
    )
  })

  await books.close(t)
})

t.test('rerank', async (t) => {
  const service = await borrowService(t, CONFIG)
  const books = await Books.open(service)
  const asked = { query: 'what is it like?', documents: ['good', { text: 'bad' }, 'so-so'] }
  /** The row of a call, and what it cost, which the balance has to follow. */
  const charged = (response: Response, count: string, cost: string, row: object = {}) =>
    books.chargedAsRow(traceOf(response), {
      ...{ status: 'success', cost, unit_type: 'search', unit_count: count, input_tokens: 0, ...row },
    })

  await t.test('passes byte for byte, but for the name of the model', async (t) => {
    const body = `{"model":"rank", "query":"wh\\u00e9re?","documents":["a", "b"],\n "top_n":1,"return_documents":true}`
    const response = await post(service, books.key, RERANK, body)
    t.equal(response.status, 200)
    const seen = await upstreamRequest(service, traceOf(response))
    t.equal(seen.body, body.replace('"rank"', '"sim-rank"'))
    const { results } = (await response.json()) as { results: object[] }
    t.equal(results.length, 1)
    t.match(results[0], { index: Number, relevance_score: Number, document: String })
    await charged(response, '1', '0.33333333')
  })

  await t.test('asks for no more results than there are documents', async (t) => {
    const response = await post(service, books.key, RERANK, { model: 'rank', ...asked, top_n: 10 })
    t.match(JSON.parse((await upstreamRequest(service, traceOf(response))).body), { top_n: 3 })
    await charged(response, '1', '0.33333333')
  })

  await t.test('costs the searches that the upstream reports', async () => {
    const response = await post(service, books.key, RERANK, {
      model: 'rank-many',
      ...asked,
      documents: Array(250).fill('a'),
    })
    await charged(response, '3', '0.99999999')
  })

  await t.test('costs one for each 100 documents without a report', async () => {
    for (const [count, searches, cost] of [
      [100, '1', '0.33333333'],
      [101, '2', '0.66666666'],
    ] as const) {
      const documents = Array(count).fill('a')
      const response = await post(service, books.key, RERANK, {
        model: 'rank-unreported',
        ...asked,
        documents,
      })
      await charged(response, searches, cost)
    }
    const response = await post(service, books.key, RERANK, { model: 'jina', ...asked })
    await charged(response, '1', '0.33333333', { input_tokens: 9 })
  })

  await t.test('is charged for no more searches than it can have', async () => {
    const response = await post(service, books.key, RERANK, { model: 'many', ...asked })
    await charged(response, '1', '0.33333333')
  })

  await t.test('goes to the fallback of its model', async (t) => {
    const response = await post(service, books.key, RERANK, { model: 'rank-falls-back', ...asked })
    t.equal(response.status, 200)
    t.equal(response.headers.get('x-served-model'), 'rank')
    await charged(response, '1', '0.33333333', { model: 'rank', attempts_count: 2 })
  })

  await t.test('is found in the log by its unit, with how it was charged', async (t) => {
    const rows = await service.logs(books.key, (found) => found.length > 0, '&unit_type=search&limit=1')
    const detail = await service.get(books.key, `/v1/logs/${rows[0]!.id}`)
    const { gateway, request } = (await detail.json()) as Record<
      'gateway' | 'request',
      { k: string; v: unknown }[]
    >
    t.match(
      request.find(({ k }) => k === 'endpoint'),
      { v: 'POST /v1/rerank' },
    )
    t.match(
      gateway.find(({ k }) => k === 'charge'),
      { v: '1 search x 0.33333333 = 0.33333333' },
    )
  })

  await t.test('is refused for other models, and in other forms', async (t) => {
    const cases = [
      [{ ...asked, model: 'embed' }, 404],
      [{ ...asked, model: 'talk' }, 404],
      [{ ...asked, model: 'rank', documents: [] }, 400],
      [{ ...asked, model: 'rank', documents: [7] }, 400],
      [{ ...asked, model: 'rank', top_n: 0 }, 400],
      [{ ...asked, model: 'rank', query: undefined }, 400],
      [{ ...asked, model: 'rank', documents: [{ image: 'http://127.0.0.1/secret.png' }] }, 400],
    ] as const
    for (const [body, status] of cases) {
      const response = await post(service, books.key, RERANK, body)
      t.equal(response.status, status, JSON.stringify(body))
      books.free(traceOf(response), { status: 'rejected' })
    }
    const dear = await post(service, books.key, RERANK, { ...asked, model: 'rank' }, { 'x-max-price': '0.3' })
    t.match((await errorOf(dear)).message, /up to 0.33333333 credits, and at most 0.3/)
    books.free(traceOf(dear), { status: 'rejected' })
    t.match(await rowOf(service, books.key, traceOf(dear)), { unit_type: 'search', unit_count: null })
  })

  await books.close(t)
})
