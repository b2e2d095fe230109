import OpenAI from 'openai'
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { Books, checkTranslation, type Told } from '../protocols/support.ts'
import {
  asking,
  BOTH_TOOLS,
  ENOUGH_CHARACTERS,
  FROM_CACHE,
  isChargedForWhatWasSaid,
  LONG,
  PLACE_SCHEMA,
  PNG_URI,
  refusalsOf,
  refused,
  SDK_CONFIG,
  sentUpstream,
  THINK_THEN_CALL,
  TOOL_NAMES,
} from './support.ts'

const MODEL = 'responder'
const TOOLS: OpenAI.Responses.FunctionTool[] = TOOL_NAMES.map((name) => ({
  type: 'function',
  name,
  parameters: { ...PLACE_SCHEMA },
  strict: true,
}))
type Input = OpenAI.Responses.ResponseInput
type Body = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'model' | 'stream'>

const user = (content: string | OpenAI.Responses.ResponseInputMessageContentList): Input => [
  { role: 'user', content },
]

function toldBy(usage: OpenAI.Responses.ResponseUsage | undefined): Told {
  if (usage === undefined) throw new Error('no usage was reported')
  return {
    input: usage.input_tokens,
    output: usage.output_tokens,
    cached: usage.input_tokens_details.cached_tokens,
    cacheWrite: usage.input_tokens_details.cache_write_tokens ?? 0,
    reasoning: usage.output_tokens_details.reasoning_tokens,
  }
}

const textOf = ({ output }: OpenAI.Responses.Response): string =>
  output
    .flatMap((item) => (item.type === 'message' ? item.content : []))
    .map((part) => (part.type === 'output_text' ? part.text : ''))
    .join('')

const callsOf = ({ output }: OpenAI.Responses.Response) =>
  output.filter((item) => item.type === 'function_call')

t.test('the openai SDK, with responses', async (t) => {
  const service = await borrowService(t, SDK_CONFIG)
  const clientOf = (apiKey: string) => new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey, maxRetries: 0 })
  const books = await Books.open(service)
  const client = clientOf(books.key)

  /** One call, whole or streamed; the last event of a stream holds the whole response. */
  const respond = async (stream: boolean, body: Body) => {
    const request = { instructions: 'Be brief.', ...body, model: MODEL }
    const { data, response: http } = stream
      ? await client.responses.create({ ...request, stream }).withResponse()
      : await client.responses.create(request).withResponse()
    checkTranslation(t, http.headers, null)
    let response = 'output' in data ? data : undefined
    if (!('output' in data)) {
      const numbers: number[] = []
      for await (const event of data) {
        numbers.push(event.sequence_number)
        if (event.type === 'response.completed' || event.type === 'response.incomplete')
          response = event.response
      }
      t.same(
        numbers,
        [...numbers].sort((a, b) => a - b),
      )
    }
    if (response === undefined) throw new Error('the stream was not complete')
    const requestId = http.headers.get('x-gateway-trace')
    const told = toldBy(response.usage)
    await books.charged(requestId, told, { model: MODEL })
    return { response, told, requestId }
  }

  for (const stream of [false, true]) {
    const how = stream ? 'streamed' : 'whole'
    await t.test(`answers, ${how}`, async (t) => {
      const { response, told } = await respond(stream, { input: user(asking('tokens=9')) })
      t.match(response, { object: 'response', status: 'completed' })
      t.ok(textOf(response))
      t.equal(told.output, 9)
      const cut = await respond(stream, { input: user('Go on and on.'), max_output_tokens: 16 })
      t.match(cut.response, { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
    })

    await t.test(`calls two tools, and goes on with what they say, ${how}`, async (t) => {
      const input = user(BOTH_TOOLS)
      const { response } = await respond(stream, { input, tools: TOOLS })
      const calls = callsOf(response)
      t.same(
        calls.map(({ name }) => name),
        TOOL_NAMES,
      )
      for (const call of calls) t.type(JSON.parse(call.arguments).place, 'string')
      const results = calls.map(({ call_id }, index) => ({
        type: 'function_call_output' as const,
        call_id,
        output: `result ${index}`,
      }))
      const answer = await respond(stream, {
        input: [...input, ...(response.output as Input), ...results],
        tools: TOOLS,
      })
      t.ok(textOf(answer.response))
    })

    await t.test(`hands sealed thought back, ${how}`, async (t) => {
      const input = user(THINK_THEN_CALL)
      const body: Body = {
        input,
        tools: TOOLS,
        store: false,
        include: ['reasoning.encrypted_content'],
        reasoning: { effort: 'low', summary: 'auto' },
      }
      const { response, told } = await respond(stream, body)
      t.equal(told.reasoning, 8)
      const thought = response.output.find((item) => item.type === 'reasoning')
      const sealed = thought?.encrypted_content ?? ''
      t.ok(sealed)
      const [call] = callsOf(response)
      const result = { type: 'function_call_output' as const, call_id: call?.call_id ?? '', output: 'sunny' }
      const next = await respond(stream, {
        ...body,
        input: [...input, ...(response.output as Input), result],
      })
      t.ok(textOf(next.response))
      t.ok((await sentUpstream(service, next.requestId)).includes(sealed))
    })

    await t.test(`pays the price of the cache, ${how}`, async (t) => {
      const { told } = await respond(stream, { input: user(FROM_CACHE) })
      t.same(told, { input: 1000, cached: 600, cacheWrite: 100, output: 10, reasoning: 0 })
    })
  }

  await t.test('shows a picture', async (t) => {
    const { response, requestId } = await respond(false, {
      input: user([
        { type: 'input_text', text: 'What is this?' },
        { type: 'input_image', image_url: PNG_URI, detail: 'auto' },
      ]),
    })
    t.ok(textOf(response))
    t.ok((await sentUpstream(service, requestId)).includes(PNG_URI))
  })

  await t.test('leaves, and pays for what was said', async (t) => {
    const { data: stream, response } = await client.responses
      .create({ model: MODEL, input: user(LONG), stream: true })
      .withResponse()
    let seen = ''
    for await (const event of stream) {
      if (event.type === 'response.output_text.delta') seen += event.delta
      if (seen.length > ENOUGH_CHARACTERS) break
    }
    const requestId = response.headers.get('x-gateway-trace')!
    await isChargedForWhatWasSaid(t, service, books, requestId, seen)
  })

  await t.test('knows refusals by their class', async (t) => {
    for (const [status, kind, code] of refusalsOf(OpenAI)) {
      const call = client.responses.create({ model: MODEL, input: user(asking(`fault=status:${status}`)) })
      const error = await refused<InstanceType<typeof OpenAI.APIError>>(t, call, kind, {
        status,
        code,
      })
      books.free(error.headers?.get('x-gateway-trace'), { status: 'error', error_code: code })
    }
    const stateful = client.responses.create({ model: MODEL, input: 'hi', previous_response_id: 'resp_1' })
    const error = await refused<InstanceType<typeof OpenAI.APIError>>(t, stateful, OpenAI.BadRequestError, {
      status: 400,
      message: /previous_response_id/,
    })
    books.free(error.headers?.get('x-gateway-trace'), { status: 'rejected', error_code: 'invalid_request' })
    const stranger = clientOf('sk-nobody').responses.create({ model: MODEL, input: 'hi' })
    await refused(t, stranger, OpenAI.AuthenticationError, { code: 'invalid_api_key' })
    const poor = await service.newKey('0')
    const broke = clientOf(poor.key).responses.create({ model: MODEL, input: 'hi' })
    await refused(t, broke, OpenAI.APIError, { status: 402, code: 'quota_exceeded' })
  })

  await books.close(t)
})
