/** The openai SDK at the older completions endpoint, and with a body of the responses protocol at that of chat-completions. */
import OpenAI from 'openai'
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream'
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import {
  Books,
  CHAT_PROTOCOLS,
  type ChatProtocol,
  checkRefused,
  checkTranslation,
  ERRORS,
  type Told,
} from '../protocols/support.ts'
import { post, rowOf, say, traceOf, upstreamRequest } from '../support.ts'
import { asking, MODELS, PLACE_SCHEMA, SERVING_CONFIG } from './support.ts'

type Asked = Omit<OpenAI.CompletionCreateParamsNonStreaming, 'model' | 'stream'>

function toldBy(usage: OpenAI.CompletionUsage | null | undefined): Told {
  if (usage == null) throw new Error('no usage was reported')
  return { input: usage.prompt_tokens, output: usage.completion_tokens }
}

const LONG_TEXT = 'hello world '.repeat(8000)
const translatedTo = (upstream: ChatProtocol) => (upstream === 'chat-completions' ? null : upstream)

t.test('the openai SDK', async (t) => {
  const service = await borrowService(t, SERVING_CONFIG)
  const books = await Books.open(service)
  const client = new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey: books.key, maxRetries: 0 })

  /** One text completion, whole or streamed: its text, and the other fields of its one choice. */
  const complete = async (upstream: ChatProtocol, stream: boolean, asked: Asked, warning?: RegExp) => {
    const model = MODELS[upstream]
    const request = { ...asked, model }
    const { data, response } = stream
      ? await client.completions
          .create({ ...request, stream, stream_options: { include_usage: true } })
          .withResponse()
      : await client.completions.create(request).withResponse()
    checkTranslation(t, response.headers, translatedTo(upstream), warning)
    const answers: OpenAI.Completion[] = []
    if ('choices' in data) answers.push(data)
    else for await (const answer of data) answers.push(answer)
    for (const { object } of answers) t.equal(object, 'text_completion')
    const choices = answers.flatMap((answer) => answer.choices)
    const told = toldBy(answers.at(-1)?.usage)
    const requestId = response.headers.get('x-gateway-trace')
    await books.charged(requestId, told, { model })
    const text = choices.map((choice) => choice.text).join('')
    return { text, told, requestId, choices, finish: choices.at(-1)?.finish_reason }
  }

  for (const upstream of CHAT_PROTOCOLS)
    await t.test(`text at a channel of ${upstream}`, async (t) => {
      for (const stream of [false, true]) {
        const said = await complete(upstream, stream, { prompt: asking('tokens=9'), temperature: 1 })
        t.ok(said.text)
        t.same([said.told.output, said.finish], [9, 'stop'])
        const cut = await complete(
          upstream,
          stream,
          { prompt: [asking('tokens=99')], max_tokens: 16, best_of: 2 },
          /^best_of/,
        )
        t.same([cut.told.output, cut.finish], [16, 'length'])
      }
    })

  await t.test('a long prompt, the probabilities of tokens, and the row', async (t) => {
    const long = await complete('chat-completions', true, { prompt: LONG_TEXT, max_tokens: 5 })
    const { body } = await upstreamRequest(service, long.requestId!)
    t.match(JSON.parse(body), { messages: [{ role: 'user', content: LONG_TEXT }], prompt: undefined })
    for (const stream of [false, true]) {
      const { choices, text } = await complete('chat-completions', stream, { prompt: 'hi', logprobs: 2 })
      const found = choices.flatMap(({ logprobs }) => (logprobs == null ? [] : [logprobs]))
      t.equal(found.flatMap(({ tokens }) => tokens ?? []).join(''), text)
      t.equal(found[0]?.text_offset?.[0], 0)
      t.equal(Object.keys(found[0]?.top_logprobs?.[0] ?? {}).length, 2)
      t.equal(typeof found[0]?.token_logprobs?.[0], 'number')
    }
    const { id } = await rowOf(service, books.key, long.requestId!)
    const detail = await service.get(books.key, `/v1/logs/${id}`)
    t.match(await detail.text(), 'POST /v1/completions')
  })

  await t.test('is told what an endpoint of chats cannot do', async () => {
    const ask = (more: object) =>
      post(service, books.key, '/v1/completions', {
        model: MODELS['chat-completions'],
        prompt: 'hi',
        ...more,
      })
    for (const [more, message] of [
      [{ prompt: ['a', 'b'] }, /'prompt' .*one text/],
      [{ prompt: [1, 2] }, /'prompt\[0\]' .*tokens as their text/],
      [{ prompt: undefined }, /'prompt'/],
      [{ suffix: 'and so on' }, /'suffix' .*leave it out/],
      [{ echo: true }, /'echo' .*leave it out/],
      [{ messages: say('hi') }, /'messages' .*chat\/completions/],
      [{ max_tokens: 0 }, /'max_tokens'/],
    ] as const) {
      const refused = await ask(more)
      books.free(traceOf(refused), { error_code: 'invalid_request' })
      await checkRefused(t, refused, 'chat-completions', ERRORS.invalidRequest, message)
    }
  })

  await t.test('needs a balance', async () => {
    const { key } = await service.newKey('0')
    const asked = { model: MODELS['chat-completions'], prompt: 'hi' }
    await checkRefused(
      t,
      await post(service, key, '/v1/completions', asked),
      'chat-completions',
      ERRORS.quotaExceeded,
    )
  })

  await t.test('repeats an intent without a second charge', async (t) => {
    const prompt = 'Once.'
    const model = MODELS.messages
    const headers = { 'idempotency-key': 'one-text' }
    const first = await client.completions.create({ model, prompt }, { headers }).withResponse()
    await books.charged(first.response.headers.get('x-gateway-trace'), toldBy(first.data.usage))
    const again = await client.completions.create({ model, prompt }, { headers }).withResponse()
    t.equal(again.response.headers.get('idempotency-replayed'), 'true')
    t.same(again.data, first.data)
    const other = await client.completions
      .create({ model, prompt: 'Twice.' }, { headers })
      .catch((error: InstanceType<typeof OpenAI.ConflictError>) => error)
    t.match(other, { status: 409, code: 'idempotency_key_reuse' })
    books.free((other as InstanceType<typeof OpenAI.ConflictError>).headers.get('x-gateway-trace'), {})
  })

  await t.test('shows the cost in the usage', async (t) => {
    const asked = { model: MODELS['chat-completions'], prompt: 'hi', usage: { include: true } }
    for (const stream of [false, true]) {
      const answer = await post(service, books.key, '/v1/completions', { ...asked, stream })
      const text = await answer.text()
      const { cost } = await books.chargedAsRow(traceOf(answer), { status: 'success' })
      t.match(text, `"cost":${cost}`)
    }
  })

  for (const upstream of CHAT_PROTOCOLS)
    await t.test(`a body of responses at a channel of ${upstream}`, async (t) => {
      const model = MODELS[upstream]
      const tools = [{ type: 'function', name: 'weather', parameters: PLACE_SCHEMA, strict: true }]
      const input = [
        { role: 'user', content: [{ type: 'input_text', text: asking('tool_calls=1') }] },
        { type: 'function_call', call_id: 'c', name: 'weather', arguments: '{"place":"Bergen"}' },
        { type: 'function_call_output', call_id: 'c', output: 'Rain' },
        { role: 'user', content: asking('tool_calls=1') },
      ]
      const asked = { instructions: 'Be brief.', model, input, tools, store: false, max_output_tokens: 100 }
      for (const stream of [false, true]) {
        const body = { ...asked, stream, ...(stream && { stream_options: { include_usage: true } }) }
        const { data, response } = await client.chat.completions.create(body as never).withResponse()
        checkTranslation(t, response.headers, translatedTo(upstream))
        const completion = stream
          ? await ChatCompletionStream.fromReadableStream(
              (data as unknown as { toReadableStream(): ReadableStream }).toReadableStream(),
            ).finalChatCompletion()
          : (data as unknown as OpenAI.ChatCompletion)
        const requestId = response.headers.get('x-gateway-trace')
        await books.charged(requestId, toldBy(completion.usage), { model })
        t.equal(completion.object, 'chat.completion')
        t.match(completion.choices[0]?.message.tool_calls, [{ function: { name: 'weather' } }])
        t.equal(completion.choices[0]?.finish_reason, 'tool_calls')
      }
    })

  await t.test(
    'a body of responses is named what it loses, and refused in the words of its fields',
    async (t) => {
      const model = MODELS['chat-completions']
      const ask = (more: object) =>
        post(service, books.key, '/v1/chat/completions', { model, input: 'hi', ...more })
      const long = await ask({
        input: LONG_TEXT,
        include: ['file_search_call.results'],
        max_output_tokens: 5,
      })
      checkTranslation(t, long.headers, null, /^file_search_call.results$/)
      const { body } = await upstreamRequest(service, traceOf(long))
      t.match(JSON.parse(body), {
        messages: [{ role: 'user', content: LONG_TEXT }],
        max_completion_tokens: 5,
      })
      const { usage } = (await long.json()) as OpenAI.ChatCompletion
      await books.charged(traceOf(long), toldBy(usage))
      for (const [more, message] of [
        [{ previous_response_id: 'resp_1' }, /'previous_response_id'/],
        [{ input: [{ role: 'user' }] }, /'input\[0\]'/],
        [{ input: undefined }, /'messages'/],
        [{ messages: [] }, /'messages'/],
      ] as const) {
        const refused = await ask(more)
        books.free(traceOf(refused), { error_code: 'invalid_request' })
        await checkRefused(t, refused, 'chat-completions', ERRORS.invalidRequest, message)
      }
    },
  )

  await t.test('one row for each', (t) => books.close(t))
})
