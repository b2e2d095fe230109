/**
 * An upstream that answers a stream in one piece: each SDK reads a stream all the same, which says and costs what the
 * whole answer does. See docs/api-rules.md, "Streams".
 */
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import t from 'tap'
import { serveHttp, textOf } from '../../support/http-server.ts'
import { borrowService } from '../../support/lend-services.ts'
import { Books, baseUrlAt, CHAT_PROTOCOLS, type ChatProtocol, configOf } from '../protocols/support.ts'

const TEXT = 'Grüße from “here”.\nAnd there.'
const ARGUMENTS = { place: 'Köln', days: 2 }
const TOOL = 'weather'
const TOLD = { input: 100, output: 40 }
const messages = [{ role: 'user' as const, content: 'hi' }]

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

/** Each with a text, a call of a tool and usage. */
const ANSWERS: Readonly<Record<ChatProtocol, object>> = {
  'chat-completions': {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_800_000_000,
    model: 'm',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: TEXT,
          tool_calls: ['call_1', 'call_2'].map((id) => ({
            id,
            type: 'function',
            function: { name: TOOL, arguments: JSON.stringify(ARGUMENTS) },
          })),
        },
        finish_reason: 'tool_calls',
      },
    ],
    usage: { prompt_tokens: TOLD.input, completion_tokens: TOLD.output, total_tokens: 140 },
  },
  messages: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [
      { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
      { type: 'text', text: TEXT },
      { type: 'tool_use', id: 'toolu_1', name: TOOL, input: ARGUMENTS },
    ],
    stop_reason: 'tool_use',
    stop_sequence: null,
    usage: { input_tokens: TOLD.input, output_tokens: TOLD.output },
  },
  'generate-content': {
    candidates: [
      {
        index: 0,
        content: {
          role: 'model',
          parts: [{ text: TEXT }, { functionCall: { name: TOOL, args: ARGUMENTS } }],
        },
        finishReason: 'STOP',
      },
    ],
    usageMetadata: {
      promptTokenCount: TOLD.input,
      candidatesTokenCount: TOLD.output,
      totalTokenCount: TOLD.input + TOLD.output,
    },
  },
  responses: {
    id: 'resp_1',
    object: 'response',
    created_at: 1_800_000_000,
    status: 'completed',
    model: 'm',
    output: [
      { id: 'rs_1', type: 'reasoning', summary: [] },
      {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: TEXT, annotations: [] }],
      },
      {
        id: 'fc_1',
        type: 'function_call',
        call_id: 'call_1',
        name: TOOL,
        arguments: JSON.stringify(ARGUMENTS),
        status: 'completed',
      },
    ],
    usage: { input_tokens: TOLD.input, output_tokens: TOLD.output, total_tokens: 140 },
  },
}

/** The model of each pair of protocols. */
const modelOf = (client: ChatProtocol, upstream: ChatProtocol): string => `${client}.${upstream}`
const PAIRS: readonly (readonly [ChatProtocol, ChatProtocol])[] = [
  ...CHAT_PROTOCOLS.map((protocol) => [protocol, protocol] as const),
  ['chat-completions', 'messages'],
  ['chat-completions', 'generate-content'],
]

t.test('a stream that the upstream answers whole', async (t) => {
  const url = await serveHttp(t, async (request, response) => {
    const body = await textOf(request)
    const [, inPath] = /\/models\/([^/:?]+):/.exec(request.url ?? '') ?? []
    const [, protocol] = (inPath ?? (JSON.parse(body) as { model: string }).model).split('.')
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(ANSWERS[protocol as ChatProtocol], null, 2))
  })
  const models = PAIRS.map((pair) => modelOf(...pair))
  const channels = PAIRS.map(([client, protocol]) => {
    const model = modelOf(client, protocol)
    return {
      id: model,
      protocol,
      base_url: baseUrlAt(url, protocol),
      api_key: 'k',
      models: { [model]: model },
    }
  })
  const service = await borrowService(
    t,
    configOf(Object.fromEntries(models.map((model) => [model, {}])), channels),
  )
  const books = await Books.open(service)
  const openaiOf = (apiKey: string) => new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey, maxRetries: 0 })
  const openai = openaiOf(books.key)
  /** For calls whose responses the SDK keeps to itself. */
  const { key: other } = await service.newKey('1000000')
  const charged = (response: Response, model: string) => {
    t.match(response.headers.get('content-type'), /^text\/event-stream/, model)
    return books.charged(response.headers.get('x-gateway-trace'), TOLD, { model })
  }

  for (const upstream of ['chat-completions', 'messages', 'generate-content'] as const)
    await t.test(`chat-completions from ${upstream}`, async (t) => {
      const model = modelOf('chat-completions', upstream)
      for (const include_usage of [true, false]) {
        const { data, response } = await openai.chat.completions
          .create({ model, messages, stream: true, stream_options: { include_usage } })
          .withResponse()
        const chunks = await all(data)
        const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta))
        t.equal(deltas.map(({ content }) => content ?? '').join(''), TEXT)
        const calls = deltas.flatMap(({ tool_calls = [] }) => tool_calls)
        t.equal(new Set(calls.map(({ index }) => index)).size, upstream === 'chat-completions' ? 2 : 1)
        const first = calls.filter(({ index }) => index === 0)
        t.equal(first[0]?.function?.name, TOOL)
        t.same(JSON.parse(first.map((call) => call.function?.arguments ?? '').join('')), ARGUMENTS)
        const finishes = chunks.flatMap(({ choices }) =>
          choices.flatMap((choice) => choice.finish_reason ?? []),
        )
        t.same(finishes, ['tool_calls'])
        t.same(chunks.filter(({ usage }) => usage != null).length, include_usage ? 1 : 0)
        t.equal(chunks.at(-1)?.object, 'chat.completion.chunk')
        await charged(response, model)
      }
      const helper = openaiOf(other).chat.completions.stream({ model, messages })
      t.equal((await helper.finalMessage()).content, TEXT)
    })

  await t.test('messages', async () => {
    const model = modelOf('messages', 'messages')
    const client = new Anthropic({ baseURL: service.baseUrl, apiKey: books.key, maxRetries: 0 })
    const { data, response } = await client.messages
      .stream({ model, max_tokens: 99, messages })
      .withResponse()
    const { _request_id: _, ...message } = (await data.finalMessage()) as Anthropic.Message & {
      _request_id?: string
    }
    t.match(message, ANSWERS.messages)
    t.equal(await data.finalText(), TEXT)
    await charged(response, model)
  })

  await t.test('responses', async () => {
    const model = modelOf('responses', 'responses')
    const stream = openaiOf(other).responses.stream({ model, input: 'hi' })
    let said = ''
    const numbers: number[] = []
    for await (const event of stream) {
      numbers.push(event.sequence_number)
      if (event.type === 'response.output_text.delta') said += event.delta
    }
    t.equal(said, TEXT)
    t.same(
      numbers,
      numbers.map((_, index) => index),
    )
    const final = await stream.finalResponse()
    t.equal(final.output_text, TEXT)
    t.match(final.output, (ANSWERS.responses as { output: object[] }).output)
    const { data, response } = await openai.responses
      .create({ model, input: 'hi', stream: true })
      .withResponse()
    await all(data)
    await charged(response, model)
  })

  await t.test('generate-content', async () => {
    const model = modelOf('generate-content', 'generate-content')
    const google = new GoogleGenAI({ apiKey: other, httpOptions: { baseUrl: service.baseUrl } })
    const pieces = await all(await google.models.generateContentStream({ model, contents: 'hi' }))
    t.equal(pieces.map(({ text }) => text ?? '').join(''), TEXT)
    t.match(
      pieces.flatMap(({ functionCalls = [] }) => functionCalls),
      [{ name: TOOL, args: ARGUMENTS }],
    )
    const path = `/v1beta/models/${model}:streamGenerateContent?alt=sse`
    const response = await fetch(service.baseUrl + path, {
      method: 'POST',
      headers: { 'x-goog-api-key': books.key, 'content-type': 'application/json' },
      body: JSON.stringify({ contents: [{ parts: [{ text: 'hi' }] }] }),
    })
    t.match(await response.text(), /^data: \{.*\}\n\n$/)
    await charged(response, model)
  })

  await books.close(t)
})
