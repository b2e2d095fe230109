import OpenAI from 'openai'
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream'
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { Books, type ChatProtocol, checkTranslation, type Told } from '../protocols/support.ts'
import {
  asking,
  BOTH_TOOLS,
  ENOUGH_CHARACTERS,
  FROM_CACHE,
  isChargedForWhatWasSaid,
  LONG,
  MODELS,
  PLACE_SCHEMA,
  PNG_BASE64,
  PNG_URI,
  refusalsOf,
  refused,
  SDK_CONFIG,
  sentUpstream,
  THINK_THEN_CALL,
  TOOL_NAMES,
} from './support.ts'

const TOOLS: OpenAI.ChatCompletionTool[] = TOOL_NAMES.map((name) => ({
  type: 'function',
  function: { name, description: `The ${name} at a place.`, parameters: { ...PLACE_SCHEMA } },
}))
type Message = OpenAI.ChatCompletionMessageParam
type Body = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'model' | 'stream'>

/** What the gateway says beside the fields that the SDK knows. */
interface Carried {
  readonly reasoning_content?: string
  readonly images?: readonly { readonly image_url: { readonly url: string } }[]
  readonly thinking_blocks?: readonly { readonly signature: string }[]
  readonly tool_calls?: readonly {
    readonly extra_content?: { readonly google: { readonly thought_signature: string } }
  }[]
}

const user = (content: OpenAI.ChatCompletionUserMessageParam['content']): Message => ({
  role: 'user',
  content,
})

function toldBy(usage: OpenAI.CompletionUsage | null | undefined): Told {
  if (usage == null) throw new Error('no usage was reported')
  const { prompt_tokens_details: prompt, completion_tokens_details: output } = usage
  return {
    input: usage.prompt_tokens,
    output: usage.completion_tokens,
    cached: prompt?.cached_tokens ?? 0,
    cacheWrite: (prompt as { cache_write_tokens?: number } | undefined)?.cache_write_tokens ?? 0,
    reasoning: output?.reasoning_tokens ?? 0,
    serverToolCalls:
      (usage as { server_tool_use?: { web_search_requests: number } }).server_tool_use?.web_search_requests ??
      0,
  }
}

t.test('the openai SDK', async (t) => {
  const service = await borrowService(t, SDK_CONFIG)
  const clientOf = (apiKey: string) => new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey, maxRetries: 0 })

  const upstreams: readonly ChatProtocol[] = ['chat-completions', 'messages', 'generate-content']
  for (const upstream of upstreams)
    await t.test(`with a channel that speaks ${upstream}`, async (t) => {
      const books = await Books.open(service)
      const client = clientOf(books.key)
      const model = MODELS[upstream]
      const translated = upstream === 'chat-completions' ? null : upstream

      /** One call, whole or streamed; both are read by the SDK into one completion. */
      const complete = async (stream: boolean, body: Body, warning: RegExp | null = null) => {
        const request = { ...body, model }
        const { data, response } = stream
          ? await client.chat.completions
              .create({ ...request, stream, stream_options: { include_usage: true } })
              .withResponse()
          : await client.chat.completions.create(request).withResponse()
        checkTranslation(t, response.headers, translated, warning)
        const completion =
          'choices' in data
            ? data
            : await ChatCompletionStream.fromReadableStream(data.toReadableStream()).finalChatCompletion()
        const requestId = response.headers.get('x-gateway-trace')
        const told = toldBy(completion.usage)
        await books.charged(requestId, told, { model })
        const choice = completion.choices[0]!
        return { completion, choice, message: choice.message, told, requestId }
      }

      for (const stream of [false, true])
        await t.test(stream ? 'streams' : 'completes', async (t) => {
          const { completion, choice } = await complete(stream, { messages: [user(asking('tokens=9'))] })
          t.equal(completion.object, 'chat.completion')
          t.equal(choice.finish_reason, 'stop')
          t.ok(choice.message.content)
          t.equal(completion.usage?.completion_tokens, 9)

          const cut = await complete(stream, { messages: [user('Go on and on.')], max_tokens: 3 })
          t.equal(cut.choice.finish_reason, 'length')
          t.equal(cut.told.output, 3)
        })

      await t.test('gets the names of fields left out of its request', async () => {
        const warnings = {
          messages: /^logit_bias; seed.*; response_format/,
          'generate-content': /^logit_bias/,
        }
        const body: Body = {
          messages: [user('hi')],
          response_format: { type: 'json_object' },
          seed: 7,
          logit_bias: { '50256': -100 },
        }
        for (const stream of [false, true])
          await complete(stream, body, translated && warnings[translated as keyof typeof warnings])
      })

      await t.test('calls two tools side by side, and goes on with what they say', async (t) => {
        for (const stream of [false, true]) {
          const messages: Message[] = [{ role: 'system', content: 'Be brief.' }, user(BOTH_TOOLS)]
          const { message, choice } = await complete(stream, { messages, tools: TOOLS })
          const calls = message.tool_calls ?? []
          t.equal(choice.finish_reason, 'tool_calls')
          const called = calls.map((call) => (call.type === 'function' ? call.function : null))
          t.same(
            called.map((tool) => tool?.name),
            TOOL_NAMES,
          )
          for (const tool of called) t.type(JSON.parse(tool?.arguments ?? '').place, 'string')
          t.equal(new Set(calls.map(({ id }) => id)).size, 2)

          const results = calls.map(
            ({ id }, index): Message => ({ role: 'tool', tool_call_id: id, content: `result ${index}` }),
          )
          // In any order.
          const history = [...messages, message, ...results.reverse()]
          const answer = await complete(stream, { messages: history, tools: TOOLS })
          t.equal(answer.choice.finish_reason, 'stop')
          t.ok(answer.message.content)
          t.match(await sentUpstream(service, answer.requestId), /result 0.*result 1|result 1.*result 0/)
        }
      })

      await t.test('thinks, and carries what was signed to the next turn', async (t) => {
        for (const stream of [false, true]) {
          const messages: Message[] = [user(THINK_THEN_CALL)]
          const first = await complete(stream, { messages, tools: TOOLS, reasoning_effort: 'low' })
          const carried = first.message as unknown as Carried
          t.ok(carried.reasoning_content, 'the thought is shown')
          t.equal(first.told.reasoning, 8)
          const [call] = first.message.tool_calls ?? []
          const result: Message = { role: 'tool', tool_call_id: call?.id ?? '', content: 'sunny' }
          const second = await complete(stream, {
            messages: [...messages, first.message, result],
            tools: TOOLS,
            reasoning_effort: 'low',
          })
          t.ok(second.message.content)
          const signature = {
            'chat-completions': 'sunny',
            messages: carried.thinking_blocks?.[0]?.signature,
            'generate-content': carried.tool_calls?.[0]?.extra_content?.google.thought_signature,
          }[upstream as 'messages']
          t.type(signature, 'string')
          t.ok((await sentUpstream(service, second.requestId)).includes(signature ?? '?'))
        }
      })

      await t.test('shows a picture', async (t) => {
        const parts: OpenAI.ChatCompletionContentPart[] = [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: PNG_URI } },
        ]
        const { message, requestId } = await complete(false, { messages: [user(parts)] })
        t.ok(message.content)
        t.ok((await sentUpstream(service, requestId)).includes(PNG_BASE64))
      })

      await t.test('reads which pages an answer cites, and for which words', async (t) => {
        const tools = [{ type: 'web_search' } as unknown as OpenAI.ChatCompletionTool]
        const { message, told } = await complete(true, {
          messages: [user(asking('searches=2, text=Grüße'))],
          tools,
        })
        const { annotations = [] } = message
        t.equal(annotations.length, 4, 'each search has two sources')
        for (const { type, url_citation: cited } of annotations) {
          t.equal(type, 'url_citation')
          t.equal([...(message.content ?? '')].slice(cited.start_index, cited.end_index).join(''), 'Grüße')
          t.match(cited, { url: /^https:\/\/example\.com\//, title: /^About / })
        }
        t.equal(told.serverToolCalls, 2)
      })

      if (upstream === 'generate-content')
        await t.test('is given pictures, and has them worked on', async (t) => {
          const modalities = ['text', 'image'] as unknown as ['text']
          for (const stream of [false, true]) {
            const messages = [user(asking('tokens=3'))]
            const drawn = await complete(stream, { messages, modalities })
            const { images = [] } = drawn.message as Carried
            t.equal(images.length, 1)
            const [, base64 = ''] = images[0]!.image_url.url.split('data:image/png;base64,')
            t.equal(Buffer.from(base64, 'base64').toString('latin1', 1, 4), 'PNG')
            t.ok(drawn.message.content)
            const history = [...messages, drawn.message, user('Make it blue.')]
            const next = await complete(stream, { messages: history, modalities })
            t.ok((await sentUpstream(service, next.requestId)).includes(base64))
          }
        })

      await t.test('is answered in JSON by a schema', async (t) => {
        const schema = { ...PLACE_SCHEMA, required: [...PLACE_SCHEMA.required] }
        const response_format = { type: 'json_schema' as const, json_schema: { name: 'place', schema } }
        for (const stream of [false, true]) {
          const { message } = await complete(stream, { messages: [user('Where?')], response_format })
          t.type(JSON.parse(message.content ?? '').place, 'string')
        }
      })

      if (translated !== null)
        await t.test('calls a legacy function, and goes on with what it says', async (t) => {
          const functions = [{ name: 'weather', parameters: { ...PLACE_SCHEMA } }]
          for (const stream of [false, true]) {
            const messages: Message[] = [user(asking('tool_calls=1'))]
            const { message, choice } = await complete(stream, { messages, functions })
            t.equal(choice.finish_reason, 'function_call')
            t.type(JSON.parse(message.function_call?.arguments ?? '').place, 'string')
            const result: Message = { role: 'function', name: 'weather', content: 'sunny' }
            const next = await complete(stream, { messages: [...messages, message, result], functions })
            t.ok(next.message.content)
            t.match(await sentUpstream(service, next.requestId), /sunny/)
          }
        })

      await t.test('pays the price of the cache for what came from it', async (t) => {
        for (const stream of [false, true]) {
          const { told } = await complete(stream, { messages: [user(FROM_CACHE)] })
          t.match(told, { input: 1000, cached: 600, output: 10 })
          if (upstream === 'messages') t.equal(told.cacheWrite, 100)
        }
      })

      await t.test('leaves, and pays for what was said', async (t) => {
        const abort = new AbortController()
        const { data: stream, response } = await client.chat.completions
          .create({ model, messages: [user(LONG)], stream: true }, { signal: abort.signal })
          .withResponse()
        let seen = ''
        for await (const chunk of stream) {
          seen += chunk.choices[0]?.delta.content ?? ''
          if (seen.length > ENOUGH_CHARACTERS) abort.abort()
        }
        const requestId = response.headers.get('x-gateway-trace')!
        await isChargedForWhatWasSaid(t, service, books, requestId, seen)
      })

      await t.test("knows the upstream's refusals by their class", async (t) => {
        for (const [index, [status, kind, code]] of refusalsOf(OpenAI).entries()) {
          const messages = [user(asking(`fault=status:${status}`))]
          const stream = index % 2 === 1
          const call = client.chat.completions.create({ model, messages, stream })
          const error = await refused<InstanceType<typeof OpenAI.APIError>>(t, call, kind, {
            status,
            code,
          })
          t.match(error.requestID, /^req_/)
          books.free(error.requestID, { status: 'error', error_code: code })
        }
      })

      await books.close(t)
    })

  await t.test("knows the gateway's own refusals by their class", async (t) => {
    const { key } = await service.newKey('10')
    const poor = await service.newKey('0')
    const call = (apiKey: string, model: string, messages = [user('hi')]) =>
      clientOf(apiKey).chat.completions.create({ model, messages, stream: true })
    await refused(t, call('sk-nobody', 'speaker'), OpenAI.AuthenticationError, {
      status: 401,
      code: 'invalid_api_key',
      type: 'authentication_error',
    })
    const broke = { status: 402, code: 'quota_exceeded', type: 'insufficient_quota' }
    await refused(t, call(poor.key, 'speaker'), OpenAI.APIError, broke)
    await refused(t, call(key, 'thinker'), OpenAI.APIError, broke)
    await refused(t, call(key, 'unheard-of'), OpenAI.BadRequestError, {
      status: 400,
      code: 'model_not_found',
    })
    await refused(t, call(key, 'responder'), OpenAI.InternalServerError, {
      status: 503,
      code: 'no_channel_available',
    })
  })
})
