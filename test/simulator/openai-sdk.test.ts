import OpenAI, { toFile } from 'openai'
import t from 'tap'
import { readMp3, readPng } from './media/probe.ts'
import { simulatorFor } from './support.ts'

const TOOL = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}
const QUESTION = [{ role: 'user' as const, content: 'How is the weather?' }]

async function clientFor(t: Parameters<typeof simulatorFor>[0], apiKey = 'sim-key'): Promise<OpenAI> {
  const { url } = await simulatorFor(t)
  return new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })
}

t.test('the SDK streams, and its text is the text of the whole answer', async (t) => {
  const client = await clientFor(t)
  const stream = client.chat.completions.stream({
    ...{ model: 'sim-large@tokens=40', messages: QUESTION, stream_options: { include_usage: true } },
  })
  const streamed = await stream.finalChatCompletion()
  const whole = await client.chat.completions.create({ model: 'sim-large@tokens=40', messages: QUESTION })
  t.equal(streamed.choices[0]?.message.content, whole.choices[0]?.message.content)
  t.equal(streamed.choices[0]?.finish_reason, 'stop')
  t.same(streamed.usage, whole.usage)
  t.equal(streamed.id, whole.id)
})

t.test('tools are called when the last message asks, streamed or not', async (t) => {
  const client = await clientFor(t)
  const messages = [{ role: 'user' as const, content: 'Both cities. [simulate: tool_calls=2]' }]
  const request = { model: 'sim', messages, tools: [TOOL] }
  const whole = await client.chat.completions.create(request)
  const streamed = await client.chat.completions.stream(request).finalChatCompletion()
  const calls = whole.choices[0]?.message.tool_calls ?? []
  t.equal(whole.choices[0]?.finish_reason, 'tool_calls')
  t.equal(whole.choices[0]?.message.content, null)
  t.equal(calls.length, 2)
  t.not(calls[0]?.id, calls[1]?.id)
  for (const call of calls) {
    if (call.type !== 'function') throw new Error('The simulator calls functions alone.')
    t.equal(call.function.name, 'get_weather')
    t.match(JSON.parse(call.function.arguments), { city: String })
  }
  t.match(streamed.choices[0]?.message.tool_calls, calls)
  t.equal(streamed.choices[0]?.finish_reason, 'tool_calls')
})

t.test('tool_choice decides where no directive does, and its none is final', async (t) => {
  const client = await clientFor(t)
  const answer = async (tool_choice: OpenAI.ChatCompletionToolChoiceOption, content: string) => {
    const other = { type: 'function' as const, function: { name: 'other' } }
    const messages = [{ role: 'user' as const, content }]
    const { choices } = await client.chat.completions.create({
      ...{ model: 'sim', messages, tools: [other, TOOL], tool_choice },
    })
    return choices[0]?.message.tool_calls?.map((call) => (call.type === 'function' ? call.function.name : ''))
  }
  t.same(await answer('auto', 'Hello'), undefined)
  t.same(await answer('required', 'Hello'), ['other'])
  t.same(await answer({ type: 'function', function: { name: 'get_weather' } }, 'Hello'), ['get_weather'])
  t.same(await answer('none', '[simulate: tool_calls=1]'), undefined)
})

t.test('a limit inside the arguments of a call is kept', async (t) => {
  const client = await clientFor(t)
  const content = '[simulate: tool_calls=1]'
  const request = { model: 'sim', messages: [{ role: 'user' as const, content }], tools: [TOOL] }
  const argumentsOf = ({ choices }: OpenAI.ChatCompletion) => {
    const call = choices[0]?.message.tool_calls?.[0]
    return call?.type === 'function' ? call.function.arguments : undefined
  }
  const whole = argumentsOf(await client.chat.completions.create(request)) ?? ''
  t.match(whole, /^\{"city":"/)
  const cut = await client.chat.completions.create({ ...request, max_tokens: 2 })
  t.equal(argumentsOf(cut), '{"city')
  t.ok(whole.startsWith(argumentsOf(cut) ?? 'nothing'))
  t.equal(cut.choices[0]?.finish_reason, 'length')
  t.equal(cut.usage?.completion_tokens, 2)
})

t.test('models are listed, and errors become the SDK’s own', async (t) => {
  const client = await clientFor(t)
  const models = await client.models.list()
  t.ok(models.data.length > 1)
  for (const model of models.data) t.match(model, { id: /^sim-/, object: 'model', owned_by: 'simulator' })
  const create = (model: string) => client.chat.completions.create({ model, messages: QUESTION })
  await t.rejects(create('other'), { status: 404, code: 'model_not_found' })
  await t.rejects(create('sim@fault=status:500'), { status: 500, code: undefined })
  const limited = await create('sim@fault=status:429,retry_after=7').catch((error: unknown) => error)
  t.ok(limited instanceof OpenAI.RateLimitError)
  t.equal((limited as InstanceType<typeof OpenAI.APIError>).headers?.get('retry-after'), '7')
})

t.test('a bad key is refused on every endpoint', async (t) => {
  const client = await clientFor(t, 'sim-bad-key')
  await t.rejects(client.models.list(), { status: 401, code: 'invalid_api_key' })
  await t.rejects(client.chat.completions.create({ model: 'sim', messages: QUESTION }), {
    ...{ status: 401, code: 'invalid_api_key' },
  })
})

t.test('images are drawn and edited, and a text is said', async (t) => {
  const client = await clientFor(t)
  const asked = { model: 'sim-image@delay=0', prompt: 'A loaf', response_format: 'b64_json' as const }
  const drawn = await client.images.generate({ ...asked, n: 2, size: '1536x1024' })
  const [first, second] = (drawn.data ?? []).map(({ b64_json = '' }) => Buffer.from(b64_json, 'base64'))
  t.match(readPng(first as Buffer), { width: 1536, height: 1024 })
  t.notSame(first, second)
  const image = await toFile(first as Buffer, 'loaf.png', { type: 'image/png' })
  const edited = await client.images.edit({ ...asked, image: [image, image], mask: image, size: '512x512' })
  t.match(readPng(Buffer.from(edited.data?.[0]?.b64_json ?? '', 'base64')), { width: 512 })
  const speech = { model: 'sim-speech@delay=0', voice: 'alloy', input: 'Good morning.' } as const
  const said = await client.audio.speech.create(speech)
  t.ok(readMp3(Buffer.from(await said.arrayBuffer())).seconds > 0)
})
