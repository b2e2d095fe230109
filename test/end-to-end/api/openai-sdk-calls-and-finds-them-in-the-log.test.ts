import OpenAI from 'openai'
import t from 'tap'
import { parseCredits, printCredits } from '../../../schemas/money.ts'
import { borrowService } from '../../support/lend-services.ts'
import { type LogJson, until } from '../../support/service.ts'
import { balanceOf, callConfig, secretsIn } from '../support.ts'

const CREDIT = '1000000'
const MODELS = {
  talks: { simulate: 'tokens=12', input: '12.5', output: '100', extra: 'aliases: [talks-2024]' },
  slow: { simulate: 'tokens=2000,tps=200', input: '12.5', output: '100' },
  cut: { simulate: 'tokens=50,fault=reset:2000' },
  busy: { simulate: 'fault=status:429' },
  broken: { simulate: 'fault=status:500' },
  unserved: { served: false },
}
const WEATHER: OpenAI.ChatCompletionTool = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather at a place.',
    parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
  },
}
const MESSAGES: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'What is the weather?' }]

t.test('the openai SDK', async (t) => {
  const service = await borrowService(t, callConfig(MODELS))
  const { key } = await service.newKey(CREDIT)
  const client = new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey: key, maxRetries: 0 })

  /** The one row that has come since, and the check that the balance fell by its cost. */
  let [rowsSoFar, balanceSoFar] = [0, parseCredits(CREDIT)]
  const booked = async (): Promise<LogJson> => {
    rowsSoFar++
    const row = (await service.logs(key, (rows) => rows.length === rowsSoFar))[0]!
    balanceSoFar -= parseCredits(row.cost)
    const expected = printCredits(balanceSoFar)
    await until(
      `the balance fell by ${row.cost} to ${expected}`,
      async () => (await balanceOf(service, key)).remaining === expected,
    )
    return row
  }

  await t.test('completes', async (t) => {
    const { data, response } = await client.chat.completions
      .create({ model: 'talks', messages: MESSAGES })
      .withResponse()
    t.equal(data.object, 'chat.completion')
    t.equal(data.choices[0]?.finish_reason, 'stop')
    t.ok(data.choices[0]?.message.content)
    t.match(await booked(), {
      request_id: response.headers.get('x-gateway-trace'),
      status: 'success',
      input_tokens: data.usage?.prompt_tokens,
      output_tokens: data.usage?.completion_tokens,
    })
  })

  await t.test('streams, without the usage that it did not ask for', async (t) => {
    const { data: stream, response } = await client.chat.completions
      .create({ model: 'talks-2024', messages: MESSAGES, stream: true })
      .withResponse()
    let text = ''
    let finish: string | null = null
    for await (const chunk of stream) {
      t.equal(chunk.choices.length, 1)
      t.notOk(chunk.usage)
      text += chunk.choices[0]?.delta.content ?? ''
      finish = chunk.choices[0]?.finish_reason ?? finish
    }
    t.ok(text)
    t.equal(finish, 'stop')
    const row = await booked()
    t.match(row, {
      request_id: response.headers.get('x-gateway-trace'),
      status: 'success',
      output_tokens: 12,
    })
    t.not(row.cost, '0')
  })

  await t.test('streams with usage', async (t) => {
    const options = { stream: true, stream_options: { include_usage: true } } as const
    const stream = await client.chat.completions.create({ model: 'talks', messages: MESSAGES, ...options })
    const chunks: OpenAI.ChatCompletionChunk[] = []
    for await (const chunk of stream) chunks.push(chunk)
    const usage = chunks.at(-1)?.usage
    t.same(chunks.at(-1)?.choices, [])
    t.match(await booked(), { input_tokens: usage?.prompt_tokens, output_tokens: usage?.completion_tokens })
  })

  await t.test('accumulates a stream by itself', async (t) => {
    const runner = client.chat.completions.stream({ model: 'talks', messages: MESSAGES })
    const completion = await runner.finalChatCompletion()
    t.equal(completion.choices[0]?.finish_reason, 'stop')
    await booked()
  })

  await t.test('calls tools, streamed and not', async (t) => {
    const body = { model: 'talks', messages: MESSAGES, tools: [WEATHER], tool_choice: 'required' } as const
    const whole = await client.chat.completions.create({ ...body, tools: [...body.tools] })
    const [call] = whole.choices[0]?.message.tool_calls ?? []
    t.equal(whole.choices[0]?.finish_reason, 'tool_calls')
    t.equal(call?.type === 'function' && call.function.name, 'weather')
    t.type(call?.type === 'function' && JSON.parse(call.function.arguments).place, 'string')
    await booked()

    const runner = client.chat.completions.stream({ ...body, tools: [...body.tools] })
    const [streamed] = (await runner.finalChatCompletion()).choices[0]?.message.tool_calls ?? []
    t.type(streamed && JSON.parse(streamed.function.arguments).place, 'string')
    t.ok((await booked()).output_tokens > 0)

    const result: OpenAI.ChatCompletionMessageParam[] = [
      ...MESSAGES,
      { role: 'assistant', content: null, tool_calls: whole.choices[0]?.message.tool_calls ?? [] },
      { role: 'tool', tool_call_id: call?.id ?? '', content: 'sunny' },
    ]
    const answer = await client.chat.completions.create({
      model: 'talks',
      messages: result,
      tools: [WEATHER],
    })
    t.ok(answer.choices[0]?.message.content)
    await booked()
  })

  await t.test('aborts, and pays for what was said', async (t) => {
    const abort = new AbortController()
    const stream = await client.chat.completions.create(
      { model: 'slow', messages: MESSAGES, stream: true },
      { signal: abort.signal },
    )
    let seen = 0
    for await (const chunk of stream) {
      seen += (chunk.choices[0]?.delta.content ?? '').length
      if (seen > 40) abort.abort()
    }
    const row = await booked()
    t.match(row, { status: 'interrupted' })
    t.ok(row.output_tokens >= 10 && row.output_tokens < 2000)
    t.not(row.cost, '0')
  })

  await t.test('raises an error for a stream that is cut', async (t) => {
    const stream = await client.chat.completions.create({ model: 'cut', messages: MESSAGES, stream: true })
    let finish: string | null = null
    const read = async () => {
      for await (const chunk of stream) finish = chunk.choices[0]?.finish_reason ?? finish
    }
    await t.rejects(read())
    t.equal(finish, null)
    t.match(await booked(), { status: 'error', error_code: 'upstream_error' })
  })

  await t.test('knows each refusal by its class', async (t) => {
    type ErrorClass = new (...args: never[]) => Error
    const isRefused = async (call: PromiseLike<unknown>, kind: ErrorClass, expected: object) => {
      const error = await Promise.resolve(call).catch((reason: unknown) => reason)
      t.type(error, kind)
      t.match(error, expected)
    }
    const ask = (model: string) => client.chat.completions.create({ model, messages: MESSAGES })
    await isRefused(ask('unheard-of'), OpenAI.BadRequestError, { status: 400, code: 'model_not_found' })
    await isRefused(client.models.retrieve('no/such model'), OpenAI.NotFoundError, {
      code: 'model_not_found',
    })
    await isRefused(ask('busy'), OpenAI.RateLimitError, { status: 429, code: 'rate_limit_exceeded' })
    await isRefused(ask('broken'), OpenAI.InternalServerError, { status: 500, code: 'upstream_error' })
    await isRefused(ask('unserved'), OpenAI.InternalServerError, {
      status: 503,
      code: 'no_channel_available',
    })
    const stranger = new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey: 'sk-nobody', maxRetries: 0 })
    await isRefused(stranger.models.list(), OpenAI.AuthenticationError, { code: 'invalid_api_key' })
    const poor = await service.newKey('0')
    const broke = new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey: poor.key, maxRetries: 0 })
    const call = broke.chat.completions.create({ model: 'talks', messages: MESSAGES })
    await isRefused(call, OpenAI.APIError, {
      status: 402,
      code: 'quota_exceeded',
      type: 'insufficient_quota',
    })
  })

  await t.test('lists models', async (t) => {
    const ids: string[] = []
    for await (const model of client.models.list()) ids.push(model.id)
    t.same(ids, Object.keys(MODELS))
    for (const id of ids) t.match(await client.models.retrieve(id), { id, object: 'model', created: Number })
  })

  t.same(secretsIn(service, [key]), [], 'nothing secret was logged')
})
