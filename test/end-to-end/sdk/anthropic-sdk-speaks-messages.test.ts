import Anthropic from '@anthropic-ai/sdk'
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { Books, checkTranslation, type Told } from '../protocols/support.ts'
import { upstreamRequest } from '../support.ts'
import {
  asking,
  BOTH_TOOLS,
  ENOUGH_CHARACTERS,
  FROM_CACHE,
  isChargedForWhatWasSaid,
  LONG,
  PLACE_SCHEMA,
  PNG_BASE64,
  refusalsOf,
  refused,
  SDK_CONFIG,
  sentUpstream,
  THINK_THEN_CALL,
  TOOL_NAMES,
} from './support.ts'

const MODEL = 'thinker'
const MAX_TOKENS = 4096
const TOOLS: Anthropic.Tool[] = TOOL_NAMES.map((name) => ({
  name,
  description: `The ${name} at a place.`,
  input_schema: { ...PLACE_SCHEMA, required: [...PLACE_SCHEMA.required] },
}))
const THINKING = { type: 'enabled', budget_tokens: 1024 } as const
type Turn = Anthropic.MessageParam
type Body = Omit<Anthropic.MessageCreateParamsNonStreaming, 'model' | 'max_tokens' | 'stream'> & {
  readonly max_tokens?: number
}

const user = (content: Turn['content']): Turn => ({ role: 'user', content })
const textOf = ({ content }: Anthropic.Message): string =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('')
const usesOf = ({ content }: Anthropic.Message) => content.filter((block) => block.type === 'tool_use')

/** The protocol counts what came from the cache, or went there, apart from the rest. */
function toldBy(usage: Anthropic.Usage): Told {
  const cached = usage.cache_read_input_tokens ?? 0
  const cacheWrite = usage.cache_creation_input_tokens ?? 0
  return { input: usage.input_tokens + cached + cacheWrite, output: usage.output_tokens, cached, cacheWrite }
}

t.test('the anthropic SDK', async (t) => {
  const service = await borrowService(t, SDK_CONFIG)
  const clientOf = (apiKey: string) => new Anthropic({ baseURL: service.baseUrl, apiKey, maxRetries: 0 })
  const books = await Books.open(service)
  const client = clientOf(books.key)

  /** One call, whole or streamed; both are read by the SDK into one message. */
  const say = async (stream: boolean, body: Body) => {
    const request = { max_tokens: MAX_TOKENS, ...body, model: MODEL }
    const { data, response, request_id } = stream
      ? await client.messages.stream(request).withResponse()
      : await client.messages.create(request).withResponse()
    checkTranslation(t, response.headers, null)
    const message = 'finalMessage' in data ? await data.finalMessage() : data
    const requestId = response.headers.get('x-gateway-trace')
    t.equal(request_id, requestId, 'the SDK knows the request by its id')
    const told = toldBy(message.usage)
    await books.charged(requestId, told, { model: MODEL })
    return { message, told, requestId }
  }

  for (const stream of [false, true]) {
    const how = stream ? 'streamed' : 'whole'
    await t.test(`answers, ${how}`, async (t) => {
      const { message, told } = await say(stream, {
        system: 'Be brief.',
        messages: [user(asking('tokens=9'))],
      })
      t.match(message, { type: 'message', role: 'assistant', stop_reason: 'end_turn' })
      t.ok(textOf(message))
      t.equal(told.output, 9)
      const cut = await say(stream, { messages: [user('Go on and on.')], max_tokens: 3 })
      t.match(cut.message, { stop_reason: 'max_tokens', usage: { output_tokens: 3 } })
    })

    await t.test(`calls two tools, and goes on with what they say, ${how}`, async (t) => {
      const messages = [user(BOTH_TOOLS)]
      const { message } = await say(stream, { messages, tools: TOOLS, tool_choice: { type: 'auto' } })
      const uses = usesOf(message)
      t.equal(message.stop_reason, 'tool_use')
      t.same(
        uses.map(({ name }) => name),
        TOOL_NAMES,
      )
      for (const { input } of uses) t.match(input, { place: String })
      const results = uses.map(({ id }, index) => ({
        type: 'tool_result' as const,
        tool_use_id: id,
        content: `result ${index}`,
      }))
      const answer = await say(stream, {
        messages: [...messages, { role: 'assistant', content: message.content }, user(results)],
        tools: TOOLS,
      })
      t.ok(textOf(answer.message))
    })

    await t.test(`thinks, and carries what was signed to the next turn, ${how}`, async (t) => {
      const messages = [user(THINK_THEN_CALL)]
      const first = await say(stream, { messages, tools: TOOLS, thinking: THINKING })
      const [thought] = first.message.content
      const signature = thought?.type === 'thinking' ? thought.signature : ''
      t.ok(signature)
      const [use] = usesOf(first.message)
      const result = { type: 'tool_result' as const, tool_use_id: use?.id ?? '', content: 'sunny' }
      const second = await say(stream, {
        messages: [...messages, { role: 'assistant', content: first.message.content }, user([result])],
        tools: TOOLS,
        thinking: THINKING,
      })
      t.ok(textOf(second.message))
      t.ok((await sentUpstream(service, second.requestId)).includes(signature))
    })

    await t.test(`pays what the cache costs, read and written, ${how}`, async (t) => {
      const { told } = await say(stream, { messages: [user(FROM_CACHE)] })
      t.same(told, { input: 1000, cached: 600, cacheWrite: 100, output: 10 })
    })
  }

  await t.test('shows a picture', async (t) => {
    const { message, requestId } = await say(false, {
      messages: [
        user([
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG_BASE64 } },
          { type: 'text', text: 'What is this?' },
        ]),
      ],
    })
    t.ok(textOf(message))
    t.ok((await sentUpstream(service, requestId)).includes(PNG_BASE64))
  })

  await t.test('gets a system message in the middle of a conversation', async (t) => {
    const brief = { role: 'system' as const, content: 'Be brief from now on.' }
    for (const stream of [false, true]) {
      const { message, requestId } = await say(stream, { messages: [user('Hello!'), brief] })
      t.ok(textOf(message))
      t.ok((await sentUpstream(service, requestId)).includes(JSON.stringify(brief)))
    }
  })

  await t.test('has its beta features named upstream', async (t) => {
    const { data, response } = await client.beta.messages
      .create({ model: MODEL, max_tokens: 8, messages: [user('hi')], betas: ['feature-2025-01-01'] })
      .withResponse()
    const requestId = response.headers.get('x-gateway-trace')
    const { headers } = await upstreamRequest(service, requestId ?? 'none')
    t.equal(headers.get('anthropic-beta'), 'feature-2025-01-01')
    await books.charged(requestId, toldBy(data.usage as Anthropic.Usage))
    t.equal(data.stop_reason, 'max_tokens')
  })

  await t.test('runs tools without a thread, which the gateway refuses', async (t) => {
    const { key } = await service.newKey('1000000')
    const { messages } = clientOf(key).beta
    const weather = {
      ...TOOLS[0]!,
      type: 'custom' as const,
      run: () => 'sunny',
      parse: (input: unknown) => input,
    }
    const runner = messages.toolRunner({
      ...{ model: MODEL, max_tokens: MAX_TOKENS, tools: [weather] },
      messages: [user(asking('tool_calls=1'))],
    })
    const reasons: unknown[] = []
    for await (const { stop_reason } of runner) reasons.push(stop_reason)
    t.same(reasons, ['tool_use', 'end_turn'])
    const thread = messages.thread({ model: MODEL, max_tokens: 9 })
    await refused(t, thread.send(user('hi')), Anthropic.BadRequestError, {
      error: { type: 'error', error: { details: { error_code: 'thread_unsupported_request' } } },
    })
    const rows = await service.logs(key, (found) => found.length >= 4)
    t.same(
      rows.map(({ status }) => status),
      ['rejected', 'success', 'success', 'rejected'],
    )
  })

  await t.test('counts tokens, which costs nothing and leaves no row', async (t) => {
    const { input_tokens } = await client.messages.countTokens({ model: MODEL, messages: [user('hello')] })
    t.ok(input_tokens > 0)
  })

  await t.test('leaves, and pays for what was said', async (t) => {
    const stream = client.messages.stream({ model: MODEL, max_tokens: MAX_TOKENS, messages: [user(LONG)] })
    const { response } = await stream.withResponse()
    let seen = ''
    stream.on('text', (text) => {
      seen += text
      if (seen.length > ENOUGH_CHARACTERS) stream.abort()
    })
    await refused(t, stream.done(), Anthropic.APIUserAbortError, {})
    const requestId = response.headers.get('x-gateway-trace')!
    await isChargedForWhatWasSaid(t, service, books, requestId, seen)
  })

  await t.test('knows refusals by their class', async (t) => {
    type ApiError = InstanceType<typeof Anthropic.APIError>
    const typed = (type: string) => ({ type: 'error', error: { type, message: String } })
    for (const [index, [status, kind, code]] of refusalsOf(Anthropic).entries()) {
      const messages = [user(asking(`fault=status:${status}`))]
      const call = client.messages.create({ model: MODEL, max_tokens: 9, messages, stream: index % 2 === 1 })
      const error = await refused<ApiError>(t, call, kind, {
        status,
        error: typed(status === 429 ? 'rate_limit_error' : 'api_error'),
      })
      t.match(error.requestID, /^req_/)
      books.free(error.requestID, { status: 'error', error_code: code })
    }
    const poor = await service.newKey('0')
    const ask = (apiKey: string, model: string) =>
      clientOf(apiKey).messages.create({ model, max_tokens: 9, messages: [user('hi')] })
    await refused(t, ask('sk-nobody', MODEL), Anthropic.AuthenticationError, {
      status: 401,
      error: typed('authentication_error'),
    })
    await refused(t, ask(poor.key, MODEL), Anthropic.APIError, { status: 402, error: typed('billing_error') })
    const { key } = await service.newKey('10')
    await refused(t, ask(key, 'unheard-of'), Anthropic.BadRequestError, {
      status: 400,
      error: typed('not_found_error'),
    })
    await refused(t, ask(key, 'speaker'), Anthropic.InternalServerError, {
      status: 503,
      error: typed('overloaded_error'),
    })
  })

  await t.test('lists the models', async (t) => {
    const ids: string[] = []
    for await (const model of client.models.list()) ids.push(model.id)
    t.match(await client.models.retrieve(MODEL), { id: MODEL, type: 'model', display_name: MODEL })
    await refused(t, client.models.retrieve('unheard-of'), Anthropic.NotFoundError, { status: 404 })
    t.same(ids.sort(), ['responder', 'signer', 'speaker', 'thinker'])
  })

  await books.close(t)
})
