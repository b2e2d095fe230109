/** The simulated chat-completions protocol. */
import { once } from 'node:events'
import OpenAI, { toFile } from 'openai'
import t from 'tap'
import { readMp3, readPng } from './media/probe.ts'
import { type Completion, call, chatBody, chunksOf, dataOf, open, simulatorFor } from './support.ts'

t.test('chat completions', async (t) => {
  // The simulated chat-completions protocol.
  t.test('chat completions shapes', async (t) => {
    const { url } = await simulatorFor(t)

    const ASKED = { stream: true, stream_options: { include_usage: true } }

    t.test('a stream has a role, one word a chunk, a finish, the usage asked for, and its end', async (t) => {
      const answer = await call(url, chatBody('sim-large@tokens=3', ASKED))
      t.equal(answer.status, 200)
      t.match(answer.head, /content-type: text\/event-stream; charset=utf-8/i)
      t.equal(answer.complete, true)
      t.equal(dataOf(answer.body).at(-1), '[DONE]')
      const chunks = chunksOf(answer.body)
      const [role, first, second, third, finish, usage] = chunks
      t.equal(chunks.length, 6)
      for (const chunk of chunks) {
        t.match(chunk, { object: 'chat.completion.chunk', model: 'sim-large', id: /^chatcmpl-[0-9a-f]{24}$/ })
        t.equal(chunk.created, role?.created)
      }
      t.match(role?.choices, [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }])
      for (const chunk of [first, second, third]) {
        t.same(Object.keys(chunk?.choices[0]?.delta ?? {}), ['content'])
        t.equal(chunk?.choices[0]?.finish_reason, null)
        t.equal(chunk?.usage, null)
      }
      t.same(finish?.choices[0]?.delta, {})
      t.equal(finish?.choices[0]?.finish_reason, 'stop')
      t.same(usage?.choices, [])
      t.match(usage?.usage, { completion_tokens: 3 })
    })

    t.test('usage that nobody asked for is not sent, nor a field for it', async (t) => {
      const chunks = chunksOf((await call(url, chatBody('sim@tokens=2', { stream: true }))).body)
      t.equal(chunks.length, 4)
      for (const chunk of chunks) t.notOk('usage' in chunk)
    })

    t.test('usage is reported where the directive wants it', async (t) => {
      const usages = async (mode: string, extra: object) => {
        const { body } = await call(url, chatBody(`sim@tokens=2,usage=${mode}`, { ...extra }))
        return chunksOf(body).map((chunk) => chunk.usage?.completion_tokens ?? chunk.usage)
      }
      const plain = { stream: true }
      t.same(await usages('none', ASKED), [undefined, undefined, undefined, undefined])
      t.same(await usages('zero', ASKED), [null, null, null, null, 0])
      t.same(await usages('zero', plain), [undefined, undefined, undefined, undefined])
      t.same(await usages('early', plain), [0, 1, 2, 2])
      t.same(await usages('with_finish', plain), [undefined, undefined, undefined, 2])
      t.same(await usages('always', plain), [undefined, undefined, undefined, undefined, 2])
      t.same(await usages('always', ASKED), [null, null, null, null, 2])
      t.same(await usages('asked', ASKED), [null, null, null, null, 2])
    })

    t.test('usage is predictable: bytes of the messages by four, and the tokens sent', async (t) => {
      const messages = [{ role: 'user', content: '你好, river' }]
      const extra = { messages, n: 2 }
      const { body } = await call(url, chatBody('sim@tokens=5,reasoning=7,cached=3', extra))
      const prompt = Math.ceil(Buffer.byteLength(JSON.stringify(messages)) / 4)
      t.match((JSON.parse(body.toString()) as Completion).usage, {
        prompt_tokens: prompt,
        completion_tokens: 2 * (5 + 7),
        total_tokens: prompt + 2 * (5 + 7),
        prompt_tokens_details: { cached_tokens: 3 },
        completion_tokens_details: { reasoning_tokens: 14 },
      })
      const given = await call(url, chatBody('sim@prompt_tokens=272000,cached=9000000,usage=asked'))
      t.match((JSON.parse(given.body.toString()) as Completion).usage, {
        ...{ prompt_tokens: 272000, prompt_tokens_details: { cached_tokens: 272000 } },
      })
      const none = await call(url, chatBody('sim@usage=none'))
      t.notOk('usage' in JSON.parse(none.body.toString()))
    })

    t.test('the output limit ends an answer early, with the reason', async (t) => {
      for (const limit of ['max_tokens', 'max_completion_tokens']) {
        const { body } = await call(url, chatBody('sim@tokens=50', { [limit]: 4 }))
        const completion = JSON.parse(body.toString()) as Completion
        t.equal(completion.choices[0]?.finish_reason, 'length')
        t.equal(completion.usage?.completion_tokens, 4)
      }
      const reasoning = await call(url, chatBody('sim@tokens=50,reasoning=100', { max_tokens: 30 }))
      const completion = JSON.parse(reasoning.body.toString()) as Completion
      t.match(completion, { choices: [{ message: { content: '' }, finish_reason: 'length' }] })
      t.equal(completion.usage?.completion_tokens_details.reasoning_tokens, 30)
      const exact = await call(url, chatBody('sim@tokens=4', { max_tokens: 4 }))
      t.match(JSON.parse(exact.body.toString()), { choices: [{ finish_reason: 'stop' }] })
    })

    t.test('an address that is none is a path that is not found', async (t) => {
      for (const target of ['//', 'http://[', '/%']) {
        const socket = open(url, `GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
        t.match(String((await once(socket, 'data'))[0]), /^HTTP\/1\.1 404 /, target)
      }
    })

    t.test('several choices take turns and each ends by itself', async (t) => {
      const { body } = await call(url, chatBody('sim@tokens=2', { ...ASKED, n: 2 }))
      const chunks = chunksOf(body)
      t.same(
        chunks.map((chunk) => chunk.choices[0]?.index),
        [0, 1, 0, 1, 0, 1, 0, 1, undefined],
      )
      t.equal(chunks.at(-1)?.usage?.completion_tokens, 4)
    })

    t.test('a JSON format gives JSON, a schema gives JSON that fits it', async (t) => {
      const contentOf = async (response_format: unknown) => {
        const { body } = await call(url, chatBody('sim@tokens=9', { response_format }))
        return JSON.parse((JSON.parse(body.toString()) as Completion).choices[0]?.message.content ?? '')
      }
      t.match(await contentOf({ type: 'json_object' }), { answer: String })
      const schema = {
        type: 'object',
        properties: {
          city: { $ref: '#/$defs/name' },
          days: { type: 'array', items: { type: 'integer' } },
          unit: { enum: ['C', 'F'] },
          rain: { type: ['boolean', 'null'] },
          wind: { anyOf: [{ type: 'number' }, { type: 'null' }] },
        },
        $defs: { name: { type: 'string' } },
      }
      t.match(await contentOf({ type: 'json_schema', json_schema: { name: 'weather', schema } }), {
        ...{ city: String, days: [Number], unit: 'C', rain: Boolean, wind: Number },
      })
    })

    t.test('shown reasoning is streamed before the text, hidden reasoning only counted', async (t) => {
      const kinds = async (model: string) => {
        const chunks = chunksOf((await call(url, chatBody(model, { stream: true }))).body)
        return chunks.slice(1, -1).map((chunk) => Object.keys(chunk.choices[0]?.delta ?? {})[0])
      }
      t.same(await kinds('sim@tokens=1,reasoning=2,reasoning_text'), [
        ...['reasoning_content', 'reasoning_content', 'content'],
      ])
      t.same(await kinds('sim@tokens=1,reasoning=2'), ['content'])
    })

    t.test('refusals have the public error shape', async (t) => {
      const expect = async (body: string, headers: Record<string, string>, status: number, error: object) => {
        const answer = await call(url, body, headers)
        t.equal(answer.status, status)
        t.match(JSON.parse(answer.body.toString()), { error: { message: String, ...error } })
      }
      const invalid = { type: 'invalid_request_error', code: null }
      const model = { type: 'invalid_request_error', param: null, code: 'model_not_found' }
      await expect(chatBody('gpt-nine'), {}, 404, model)
      const key = { type: 'invalid_request_error', param: null, code: 'invalid_api_key' }
      await expect(chatBody('sim'), { authorization: 'Bearer sim-bad-key' }, 401, key)
      await expect('{"model":', {}, 400, { ...invalid, param: null })
      await expect('[]', {}, 400, { ...invalid, param: null })
      await expect('{"messages":[{}]}', {}, 400, { ...invalid, param: 'model' })
      await expect('{"model":"sim","messages":[]}', {}, 400, { ...invalid, param: 'messages' })
      await expect(chatBody('sim', { max_tokens: 0 }), {}, 400, { ...invalid, param: 'max_tokens' })
      await expect(chatBody('sim', { n: 1.5 }), {}, 400, { ...invalid, param: 'n' })
      const unknown = { ...invalid, param: 'simulate', message: /"speed"/ }
      await expect(chatBody('sim@speed=1'), {}, 400, unknown)
      await expect(chatBody('sim', { simulate: { speed: 1 } }), {}, 400, unknown)
      await expect(chatBody('sim'), { 'x-simulate': 'speed=1' }, 400, unknown)
      const wrongPath = await fetch(`${url}/v1/nothing`)
      t.equal(wrongPath.status, 404)
      t.match(await wrongPath.json(), { error: { message: /Invalid URL/, type: 'invalid_request_error' } })
      const wrongMethod = await fetch(`${url}/v1/models`, { method: 'POST', body: '{}' })
      t.equal(wrongMethod.status, 405)
      t.equal(wrongMethod.headers.get('allow'), 'GET')
    })
  })

  t.test('openai sdk', async (t) => {
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
        return choices[0]?.message.tool_calls?.map((call) =>
          call.type === 'function' ? call.function.name : '',
        )
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
      const edited = await client.images.edit({
        ...asked,
        image: [image, image],
        mask: image,
        size: '512x512',
      })
      t.match(readPng(Buffer.from(edited.data?.[0]?.b64_json ?? '', 'base64')), { width: 512 })
      const speech = { model: 'sim-speech@delay=0', voice: 'alloy', input: 'Good morning.' } as const
      const said = await client.audio.speech.create(speech)
      t.ok(readMp3(Buffer.from(await said.arrayBuffer())).seconds > 0)
    })
  })
})
