/**
 * Messages at Amazon Bedrock and Vertex AI, and generate-content at Vertex AI: played by a server that answers as their
 * references say. The charge is computed by hand from the price list below.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import t from 'tap'
import { chunk } from '../../support/event-stream.ts'
import { sendJson, serveHttp, textOf } from '../../support/http-server.ts'
import { borrowService } from '../../support/lend-services.ts'
import { post, rowOf, traceOf } from '../support.ts'
import { type ChannelPlan, configOf } from './support.ts'

/** Credits per million tokens. */
const PRICING = {
  unit: '1M_tokens',
  input: '3',
  cached_input: '0.3',
  cache_write: '3.75',
  output: '15',
} as const
/** 1000 x 3 + 2000 x 0.3 + 400 x 3.75 + 300 x 15, by a million. */
const WHOLE_COST = '0.0096'
/** The same prompt, and 80 characters of output, which are 20 tokens: 5100 + 20 x 15, by a million. */
const LEFT_COST = '0.0054'
/** 3000 x 3, of which 2000 x 0.3, and 300 x 15: 1000 x 3 + 600 + 4500, by a million. */
const GEMINI_COST = '0.0081'
/** 2000 x 0.3 + 1000 x 3, and 100 x 15 for what was reported, and 20 tokens for 80 characters behind that report. */
const GEMINI_LEFT_COST = '0.0054'
const COUNTED = 321
const PROMPT = { input_tokens: 1000, cache_read_input_tokens: 2000, cache_creation_input_tokens: 400 }
const TEXT = 'abcdefgh'.repeat(10)
const MODEL = 'claude-sonnet-4-5'

const EVENTS = [
  {
    type: 'message_start',
    message: {
      ...{ id: 'msg_1', type: 'message', role: 'assistant', model: MODEL, content: [], stop_reason: null },
      usage: { ...PROMPT, output_tokens: 1 },
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: TEXT } },
]
const END = [
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 300 } },
  {
    type: 'message_stop',
    'amazon-bedrock-invocationMetrics': { inputTokenCount: 1000, outputTokenCount: 300 },
  },
]
const WHOLE = {
  ...{ id: 'msg_1', type: 'message', role: 'assistant', model: MODEL, stop_reason: 'end_turn' },
  content: [{ type: 'text', text: TEXT }],
  usage: { ...PROMPT, output_tokens: 300 },
}
const GEMINI = {
  candidates: [{ index: 0, finishReason: 'STOP', content: { role: 'model', parts: [{ text: TEXT }] } }],
  usageMetadata: {
    ...{
      promptTokenCount: 3000,
      cachedContentTokenCount: 2000,
      candidatesTokenCount: 300,
      totalTokenCount: 3300,
    },
    trafficType: 'ON_DEMAND',
  },
  modelVersion: 'gemini-2.5-pro',
}

const GEMINI_BEGUN = [
  {
    candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'first' }] } }],
    usageMetadata: { promptTokenCount: 3000, cachedContentTokenCount: 2000, candidatesTokenCount: 100 },
  },
  { candidates: [{ index: 0, content: { role: 'model', parts: [{ text: TEXT }] } }] },
]

/** Answers of the endpoints that count, by the end of their paths. */
const COUNTS: Readonly<Record<string, object>> = {
  '/model/anthropic.claude-v1%3A0/count-tokens': { inputTokens: COUNTED },
  '/publishers/anthropic/models/count-tokens:rawPredict': { input_tokens: COUNTED },
  '/publishers/google/models/gemini-2.5-pro:countTokens': {
    totalTokens: COUNTED,
    totalBillableCharacters: 9,
  },
}

interface Received {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Readonly<Record<string, unknown>>
}
const received: Received[] = []

const sse = (event: { type: string }) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

/** A request with `top_k: 1`, or with `toolConfig` in the other protocol, gets no end. */
function stream(
  response: ServerResponse,
  type: string,
  print: (event: { type: string }) => string | Buffer,
  isCut: boolean,
) {
  response.writeHead(200, { 'content-type': type })
  for (const event of isCut ? EVENTS : [...EVENTS, ...END]) response.write(print(event))
  if (!isCut) response.end()
}

const URL_OF_IT = await serveHttp(t, async (request, response) => {
  const path = request.url ?? ''
  const body = JSON.parse(await textOf(request)) as Record<string, unknown>
  received.push({ path, headers: request.headers, body })
  const isCut = body.top_k === 1 || 'toolConfig' in body
  const counts = Object.entries(COUNTS).find(([end]) => path.endsWith(end))
  if (counts !== undefined) return void sendJson(response, 200, counts[1])
  if (path.includes('invoke-with-response-stream'))
    stream(response, 'application/vnd.amazon.eventstream', chunk, isCut)
  else if (path.includes(':streamRawPredict')) stream(response, 'text/event-stream', sse, isCut)
  else if (path.includes(':streamGenerateContent')) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const chunk of isCut ? GEMINI_BEGUN : [GEMINI]) response.write(`data: ${JSON.stringify(chunk)}\n\n`)
    if (!isCut) response.end()
  } else sendJson(response, 200, path.includes(':generateContent') ? GEMINI : WHOLE)
})
const vertex = {
  provider: 'vertex',
  api_key: 'vertex-key-0123456789',
  base_url: `${URL_OF_IT}/v1/projects/p/locations/l`,
} as const
const CHANNELS: ChannelPlan[] = [
  {
    ...{ id: 'bedrock', provider: 'bedrock', protocol: 'messages', base_url: URL_OF_IT },
    auth: {
      ...{ type: 'aws-sigv4', region: 'us-east-1' },
      ...{ access_key_id: 'AKIDEXAMPLE', secret_access_key: 'secret-of-bedrock-0123' },
    },
    models: { rock: 'anthropic.claude-v1:0', profile: 'us.anthropic.claude-v1:0' },
  },
  { ...vertex, id: 'vertex-messages', protocol: 'messages', models: { vertex: 'claude@1' } },
  { ...vertex, id: 'vertex-generate', protocol: 'generate-content', models: { gemini: 'gemini-2.5-pro' } },
]
const CONFIG = configOf(
  {
    ...{ rock: { pricing: PRICING }, profile: { pricing: PRICING }, vertex: { pricing: PRICING } },
    gemini: { pricing: PRICING },
  },
  CHANNELS,
)

t.test('platforms', async (t) => {
  const service = await borrowService(t, CONFIG)
  const { key } = await service.newKey('1000')
  const ask = (model: string, more: object = {}) =>
    post(service, key, '/v1/messages', {
      ...{ model, max_tokens: 1000, messages: [{ role: 'user', content: 'hi' }], ...more },
    })
  const costOf = async (response: Response) => (await rowOf(service, key, traceOf(response))).cost

  /** Reads a stream until it has said the text, leaves, and returns the row. */
  async function leave(path: string, body: object) {
    const leaving = new AbortController()
    const response = await post(service, key, path, body, {}, leaving.signal)
    const reader = response.body!.getReader()
    let text = ''
    while (!text.includes(TEXT)) text += Buffer.from((await reader.read()).value!).toString()
    leaving.abort()
    return rowOf(service, key, traceOf(response))
  }

  for (const model of ['rock', 'vertex']) {
    await t.test(`${model}: a whole answer`, async (t) => {
      const response = await ask(model)
      t.same(await response.json(), WHOLE)
      t.equal(await costOf(response), WHOLE_COST)
      const { body } = received.at(-1)!
      t.match(body.anthropic_version, model === 'rock' ? 'bedrock-2023-05-31' : 'vertex-2023-10-16')
      t.notOk('model' in body)
    })

    await t.test(`${model}: a streamed answer, as the protocol has it`, async (t) => {
      const response = await ask(model, { stream: true })
      t.match(response.headers.get('content-type'), 'text/event-stream')
      const text = await response.text()
      const end = END.map(({ type }) => type)
      t.same(
        [...text.matchAll(/^event: (.*)$/gm)].map(([, type]) => type),
        [...EVENTS.map(({ type }) => type), ...end],
      )
      t.match(text, TEXT)
      if (model === 'rock') t.notMatch(text, 'invocationMetrics')
      t.equal(await costOf(response), WHOLE_COST)
    })

    await t.test(`${model}: a client that leaves pays for what it got`, async (t) => {
      const row = await leave('/v1/messages', {
        ...{ model, max_tokens: 1000, stream: true, top_k: 1, messages: [{ role: 'user', content: 'hi' }] },
      })
      t.match(row, { status: 'interrupted', cost: LEFT_COST })
    })
  }

  await t.test('requests to Bedrock are signed, and those to Vertex carry the key', async (t) => {
    const [rock] = received.filter(({ path }) => path.startsWith('/model/'))
    t.equal(rock!.path, '/model/anthropic.claude-v1%3A0/invoke')
    t.match(
      rock!.headers.authorization,
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/us-east-1\/bedrock\/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=[0-9a-f]{64}$/,
    )
    const ofVertex = received.find(({ path }) => path.includes('rawPredict'))
    t.equal(ofVertex!.path, '/v1/projects/p/locations/l/publishers/anthropic/models/claude%401:rawPredict')
    t.equal(ofVertex!.headers['x-goog-api-key'], vertex.api_key)
  })

  await t.test('generate-content at Vertex, whole and streamed', async (t) => {
    for (const method of ['generateContent', 'streamGenerateContent?alt=sse']) {
      const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
      const response = await post(service, key, `/v1beta/models/gemini:${method}`, { contents })
      t.match(await response.text(), TEXT)
      t.equal(await costOf(response), GEMINI_COST)
      t.equal(
        received.at(-1)!.path,
        `/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:${method}`,
      )
    }
  })

  await t.test('a client that leaves generate-content at Vertex pays for what it got', async (t) => {
    const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
    const path = '/v1beta/models/gemini:streamGenerateContent?alt=sse'
    const row = await leave(path, { contents, toolConfig: {} })
    t.match(row, { status: 'interrupted', input_tokens: 3000, output_tokens: 120, cost: GEMINI_LEFT_COST })
  })

  await t.test('tokens are counted where each platform counts them', async (t) => {
    const messages = [{ role: 'user', content: 'hi' }]
    for (const model of ['rock', 'profile', 'vertex']) {
      const body = { model, system: 'be brief', messages }
      const response = await post(service, key, '/v1/messages/count_tokens', body)
      t.equal(response.status, 200, model)
      t.same(await response.json(), { input_tokens: COUNTED }, model)
      const { body: sent } = received.at(-1)!
      if (model === 'vertex')
        t.same(sent, { ...body, model: 'claude@1', anthropic_version: 'vertex-2023-10-16' })
      else {
        const { input } = sent as { input: { invokeModel: { body: string } } }
        t.same(JSON.parse(Buffer.from(input.invokeModel.body, 'base64').toString()), {
          ...{ system: 'be brief', messages, max_tokens: 1, anthropic_version: 'bedrock-2023-05-31' },
        })
      }
    }
    const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
    const whole = { model: 'models/gemini', contents, systemInstruction: { parts: [{ text: 'be brief' }] } }
    for (const [body, expected] of [
      [{ contents }, { contents }],
      [
        { generateContentRequest: { ...whole, safetySettings: [] } },
        { contents, systemInstruction: whole.systemInstruction },
      ],
    ]) {
      const response = await post(service, key, '/v1beta/models/gemini:countTokens', body)
      t.match(await response.json(), { totalTokens: COUNTED })
      t.same(received.at(-1)!.body, expected)
    }
  })
})
