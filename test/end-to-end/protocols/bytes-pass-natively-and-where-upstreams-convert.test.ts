/** Native, and upstream-side conversion. See docs/api-rules.md, "Protocols and translation". */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { post, traceOf, upstreamRequest } from '../support.ts'
import { Books, CHAT_PROTOCOLS, type ChatProtocol, checkTranslation, configOf, simulated } from './support.ts'

/** A client's protocol, by what the channel's own is. Each model is named after its channel. */
const WAYS: readonly (readonly [client: ChatProtocol, channel: ChatProtocol])[] = [
  ...CHAT_PROTOCOLS.map((protocol) => [protocol, protocol] as const),
  ...(['messages', 'generate-content', 'responses'] as const).map(
    (client) => [client, 'chat-completions'] as const,
  ),
  ...(['chat-completions', 'generate-content', 'responses'] as const).map(
    (client) => [client, 'messages'] as const,
  ),
  ['chat-completions', 'generate-content'],
]
const UPSTREAM_MODEL = 'sim-upstream'
const TOKENS = 12

interface Framing {
  readonly stream: boolean
  /** The query by which generate-content names it. */
  readonly query: string
}
const FRAMINGS: readonly Framing[] = [
  { stream: false, query: '' },
  { stream: true, query: '?alt=sse' },
  { stream: true, query: '' },
]

/** Spelt as no printer would: escapes, spaces, zeros, a field that only the upstream knows. */
function requestIn(protocol: ChatProtocol, model: string, { stream, query }: Framing) {
  const text = '"h\\u00e9llo  \\ud83c\\udf1e"'
  const asks = `"simulate" : {"tokens":${TOKENS},  "prompt_tokens": 1e2}`
  const head = `{ "model":\t"${model}" , "temperature": 0.50,\n ${asks},"stream" :${stream},`
  switch (protocol) {
    case 'chat-completions':
      return {
        path: '/v1/chat/completions',
        body: `${head} "stream_options":{"include_usage":${stream}}, "messages":[ {"role":"user","content":${text}}]}\n`,
      }
    case 'messages':
      return {
        path: '/v1/messages',
        body: `${head}"max_tokens":64,"messages" :[{"content" : ${text},"role":"user"} ] }`,
      }
    case 'responses':
      return {
        path: '/v1/responses',
        body: `${head}"instructions":"", "input":[{"role":"user","content":${text} }]}`,
      }
    case 'generate-content':
      return {
        path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent' : 'generateContent'}${query}`,
        body: ` { ${asks} , "contents":[{"parts" : [{"text":${text}}],"role":"user"}],"generationConfig": {"temperature":0.50 }}`,
      }
  }
}

t.test('bytes pass unchanged', async (t) => {
  const channels = CHAT_PROTOCOLS.map((protocol) => {
    const clients = WAYS.filter(([client, channel]) => channel === protocol && client !== protocol)
    const converts = clients.map(([client]) => client)
    return simulated(protocol, { [protocol]: UPSTREAM_MODEL }, { converts })
  })
  const models = Object.fromEntries(CHAT_PROTOCOLS.map((id) => [id, {}]))
  const service = await borrowService(t, configOf(models, channels))
  const books = await Books.open(service)

  for (const [client, channel] of WAYS)
    await t.test(client === channel ? client : `${client}, converted behind ${channel}`, async (t) => {
      for (const framing of FRAMINGS) {
        const { path, body } = requestIn(client, channel, framing)
        const response = await post(service, books.key, path, body)
        const answer = Buffer.from(await response.arrayBuffer())
        t.equal(response.status, 200)
        checkTranslation(t, response.headers, null)
        await books.charged(traceOf(response), { input: 100, output: TOKENS })

        // The provider answers the same request with the same bytes to any client.
        const direct = requestIn(client, UPSTREAM_MODEL, framing)
        const seen = await upstreamRequest(service, traceOf(response))
        t.equal(seen.body, direct.body, 'the request, but for the name of the model')
        const key = client === 'messages' || client === 'generate-content' ? 'x-api-key' : 'authorization'
        const expected = await fetch(service.engines.simulatorUrl + direct.path, {
          method: 'POST',
          headers: { [key]: 'any', 'x-goog-api-key': 'any', 'anthropic-version': '2023-06-01' },
          body: direct.body,
        })
        t.equal(response.headers.get('content-type'), expected.headers.get('content-type'))
        t.ok(answer.equals(Buffer.from(await expected.arrayBuffer())), 'the answer')
      }
    })

  await t.test('and the catalog says which protocols a model is served in so', async (t) => {
    const response = await service.get(books.key, '/api/v1/models/public')
    const { models } = (await response.json()) as { models: { id: string; supported_protocols: string[] }[] }
    for (const { id, supported_protocols } of models) {
      const clients = WAYS.filter(([, channel]) => channel === id).map(([client]) => client)
      t.same([...supported_protocols].sort(), [...clients].sort(), id)
    }
  })

  await books.close(t)
})
