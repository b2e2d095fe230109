/** The vendors' SDKs, with a mock of the vendors behind the gateway that shares nothing with it. */
import Anthropic from '@anthropic-ai/sdk'
import { LLMock } from '@copilotkit/aimock'
import { FunctionCallingConfigMode, GoogleGenAI, type Part } from '@google/genai'
import OpenAI from 'openai'
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream'
import t, { type Test } from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import {
  Books,
  baseUrlAt,
  CHAT_PROTOCOLS,
  type ChatProtocol,
  checkTranslation,
  configOf,
  type Told,
} from '../protocols/support.ts'
import { type ErrorClass, PLACE_SCHEMA, refused } from './support.ts'

const MODELS: Readonly<Record<ChatProtocol, string>> = {
  'chat-completions': 'gpt-4o',
  messages: 'claude-sonnet-4-5',
  'generate-content': 'gemini-2.5-flash',
  responses: 'gpt-5',
}
const ARGUMENTS = { place: 'Ulaanbaatar' }
const QUESTION = 'What is the weather there?'
const RESULT = 'sunny, 21 degrees'
const ANSWER = 'It is sunny — 21 °C in Улаанбаатар 🌞.'
/** One after the other, in the words of each protocol; the sums are the same. */
const USAGE = {
  prompt_tokens: 120,
  completion_tokens: 30,
  input_tokens: 120,
  output_tokens: 30,
  promptTokenCount: 120,
  candidatesTokenCount: 30,
}

async function startMock(t: Test): Promise<LLMock> {
  const mock = new LLMock({ port: 0, chunkSize: 3 })
  mock.on({ hasToolResult: true }, { content: ANSWER, usage: USAGE })
  mock.on(
    { userMessage: 'weather' },
    { toolCalls: [{ name: 'weather', arguments: JSON.stringify(ARGUMENTS) }], usage: USAGE },
  )
  mock.on({ userMessage: 'think' }, { content: ANSWER, reasoning: 'Let me see.', usage: USAGE })
  mock.on({ userMessage: 'too much' }, { error: { message: 'Slow down.' }, status: 429 })
  mock.on({ userMessage: 'break off' }, { content: ANSWER }, { truncateAfterChunks: 3, latency: 20 })
  await mock.start()
  t.teardown(() => mock.stop())
  return mock
}

t.test('an upstream that no one here wrote', async (t) => {
  const mock = await startMock(t)
  const channels = CHAT_PROTOCOLS.map((protocol) => ({
    id: `line-${protocol}`,
    protocol,
    base_url: baseUrlAt(mock.url, protocol),
    api_key: 'mock',
    models: { [protocol]: MODELS[protocol] },
  }))
  const models = Object.fromEntries(CHAT_PROTOCOLS.map((id) => [id, { max_output_tokens: 4096 }]))
  const service = await borrowService(t, configOf(models, channels))

  for (const upstream of ['chat-completions', 'messages', 'generate-content'] as const)
    await t.test(`by the openai SDK, to ${upstream}`, async (t) => {
      const books = await Books.open(service)
      const client = new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey: books.key, maxRetries: 0 })
      const tools: OpenAI.ChatCompletionTool[] = [
        { type: 'function', function: { name: 'weather', parameters: { ...PLACE_SCHEMA } } },
      ]
      const complete = async (stream: boolean, messages: OpenAI.ChatCompletionMessageParam[]) => {
        const request = { model: upstream, messages, tools }
        const { data, response } = stream
          ? await client.chat.completions
              .create({ ...request, stream, stream_options: { include_usage: true } })
              .withResponse()
          : await client.chat.completions.create(request).withResponse()
        checkTranslation(t, response.headers, upstream === 'chat-completions' ? null : upstream)
        const { choices, usage } =
          'choices' in data
            ? data
            : await ChatCompletionStream.fromReadableStream(data.toReadableStream()).finalChatCompletion()
        const told: Told = { input: usage?.prompt_tokens ?? 0, output: usage?.completion_tokens ?? 0 }
        t.match(told, { input: 120, output: 30 })
        await books.charged(response.headers.get('x-gateway-trace'), told)
        return choices[0]!
      }
      for (const stream of [false, true]) {
        const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: QUESTION }]
        const { message, finish_reason } = await complete(stream, messages)
        t.equal(finish_reason, 'tool_calls')
        const [call] = message.tool_calls ?? []
        t.same(call?.type === 'function' && JSON.parse(call.function.arguments), ARGUMENTS)
        const answer = await complete(stream, [
          ...messages,
          message,
          { role: 'tool', tool_call_id: call?.id ?? '', content: RESULT },
        ])
        t.equal(answer.message.content, ANSWER)
        t.equal(answer.finish_reason, 'stop')
        t.match(JSON.stringify(mock.getLastRequest()?.body), RESULT)
        const thought = await complete(stream, [{ role: 'user', content: 'think' }])
        // Of a stream, the SDK keeps the last piece alone of a field that it does not know.
        t.match(thought.message, {
          content: ANSWER,
          reasoning_content: stream ? /e\.$/ : 'Let me see.',
        })
      }
      const busy = client.chat.completions.create({
        model: upstream,
        messages: [{ role: 'user', content: 'too much' }],
      })
      const error = await refused<InstanceType<typeof OpenAI.APIError>>(t, busy, OpenAI.RateLimitError, {
        message: '429 Slow down.',
      })
      books.free(error.headers?.get('x-gateway-trace'), { error_code: 'rate_limit_exceeded' })
      const broken = await client.chat.completions
        .create({ model: upstream, messages: [{ role: 'user', content: 'break off' }], stream: true })
        .withResponse()
      let finish: string | null = null
      const read = async () => {
        for await (const chunk of broken.data) finish ??= chunk.choices[0]?.finish_reason ?? null
      }
      await read().catch(() => undefined)
      t.equal(finish, null)
      await books.chargedAsRow(broken.response.headers.get('x-gateway-trace'), { status: 'error' })
      await books.close(t)
    })

  await t.test('by the openai SDK, with responses', async (t) => {
    const books = await Books.open(service)
    const client = new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey: books.key, maxRetries: 0 })
    const tool = { type: 'function', name: 'weather', parameters: PLACE_SCHEMA, strict: true } as const
    const respond = async (stream: boolean, input: OpenAI.Responses.ResponseInput) => {
      const request = { model: 'responses', input, tools: [{ ...tool, parameters: { ...PLACE_SCHEMA } }] }
      const { data, response } = stream
        ? await client.responses.create({ ...request, stream }).withResponse()
        : await client.responses.create(request).withResponse()
      let last = 'output' in data ? data : undefined
      if (!('output' in data))
        for await (const event of data) if (event.type === 'response.completed') last = event.response
      t.match(last?.usage, { input_tokens: 120, output_tokens: 30 })
      await books.charged(response.headers.get('x-gateway-trace'), { input: 120, output: 30 })
      return last?.output ?? []
    }
    for (const stream of [false, true]) {
      const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: QUESTION }]
      const output = await respond(stream, input)
      const call = output.find((item) => item.type === 'function_call')
      t.same(JSON.parse(call?.arguments ?? ''), ARGUMENTS)
      const answer = await respond(stream, [
        ...input,
        ...(output as OpenAI.Responses.ResponseInput),
        { type: 'function_call_output', call_id: call?.call_id ?? '', output: RESULT },
      ])
      const message = answer.find((item) => item.type === 'message')
      t.match(message?.content, [{ type: 'output_text', text: ANSWER }])
    }
    await books.close(t)
  })

  await t.test('by the anthropic SDK', async (t) => {
    const books = await Books.open(service)
    const client = new Anthropic({ baseURL: service.baseUrl, apiKey: books.key, maxRetries: 0 })
    const schema = { ...PLACE_SCHEMA, required: ['place'] }
    const say = async (stream: boolean, messages: Anthropic.MessageParam[]) => {
      const tools = [{ name: 'weather', input_schema: schema }]
      const request = { model: 'messages', max_tokens: 99, messages, tools }
      const { data, response } = stream
        ? await client.messages.stream(request).withResponse()
        : await client.messages.create(request).withResponse()
      const message = 'finalMessage' in data ? await data.finalMessage() : data
      t.match(message.usage, { input_tokens: 120, output_tokens: 30 })
      await books.charged(response.headers.get('x-gateway-trace'), { input: 120, output: 30 })
      return message.content
    }
    for (const stream of [false, true]) {
      const messages: Anthropic.MessageParam[] = [{ role: 'user', content: QUESTION }]
      const content = await say(stream, messages)
      const use = content.find((block) => block.type === 'tool_use')
      t.same(use?.input, ARGUMENTS)
      const result = { type: 'tool_result' as const, tool_use_id: use?.id ?? '', content: RESULT }
      const history: Anthropic.MessageParam[] = [
        ...messages,
        { role: 'assistant', content },
        { role: 'user', content: [result] },
      ]
      t.match(await say(stream, history), [{ type: 'text', text: ANSWER }])
    }
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'too much' }]
    const busy = client.messages.create({ model: 'messages', max_tokens: 9, messages })
    type ApiError = InstanceType<typeof Anthropic.APIError>
    const kind: ErrorClass = Anthropic.RateLimitError
    const error = await refused<ApiError>(t, busy, kind, { error: { error: { message: 'Slow down.' } } })
    books.free(error.headers?.get('x-gateway-trace'), { error_code: 'rate_limit_exceeded' })
    await books.close(t)
  })

  await t.test('by the google SDK', async (t) => {
    const books = await Books.open(service)
    const { models } = new GoogleGenAI({ apiKey: books.key, httpOptions: { baseUrl: service.baseUrl } })
    const config = {
      tools: [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: PLACE_SCHEMA }] }],
      toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.AUTO } },
    }
    const generate = async (stream: boolean, contents: { role: string; parts: Part[] }[]) => {
      const request = { model: 'generate-content', contents, config }
      const answers = []
      if (stream) for await (const chunk of await models.generateContentStream(request)) answers.push(chunk)
      else answers.push(await models.generateContent(request))
      const last = answers.at(-1)
      t.match(last?.usageMetadata, { promptTokenCount: 120, candidatesTokenCount: 30 })
      const headers = new Headers(last?.sdkHttpResponse?.headers ?? {})
      await books.charged(headers.get('x-gateway-trace'), { input: 120, output: 30 })
      return answers.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
    }
    for (const stream of [false, true]) {
      const contents = [{ role: 'user', parts: [{ text: QUESTION }] }]
      const parts = await generate(stream, contents)
      const call = parts.find(({ functionCall }) => functionCall !== undefined)?.functionCall
      t.same(call?.args, ARGUMENTS)
      const result = { functionResponse: { name: 'weather', response: { output: RESULT } } }
      const history = [...contents, { role: 'model', parts }, { role: 'user', parts: [result] }]
      const answer = await generate(stream, history)
      t.equal(answer.map(({ text }) => text ?? '').join(''), ANSWER)
    }
    await books.close(t)
  })
})
