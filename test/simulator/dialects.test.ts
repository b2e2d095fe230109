/** The simulated protocols of chat. */

import { once } from 'node:events'
import OpenAI, { toFile } from 'openai'
import t from 'tap'
import { sign } from '../../simulator/dialects/messages/blocks.ts'
import {
  askGenerateContent,
  askMessages,
  askResponses,
  eventsOf,
  type Json,
  jsonOf,
  MESSAGES_HEADERS,
  type StreamEvent,
} from './dialects-support.ts'
import { readMp3, readPng } from './media/probe.ts'
import { type Completion, call, chatBody, chunksOf, dataOf, open, post, simulatorFor } from './support.ts'

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

t.test('messages', async (t) => {
  // The simulated messages protocol.
  t.test('messages shapes', async (t) => {
    const { url } = await simulatorFor(t)

    const TOOLS = [
      { name: 'now', input_schema: { type: 'object' } },
      { name: 'weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } },
    ]
    const THINKING = { thinking: { type: 'enabled', budget_tokens: 1024 } }

    t.test('a stream begins a message, its blocks, and ends them', async (t) => {
      const answer = await askMessages(url, '@tokens=2', { stream: true })
      t.match(answer.head, /content-type: text\/event-stream; charset=utf-8/i)
      t.match(answer.head, /request-id: req_[0-9a-f]{24}/)
      const events = eventsOf(answer.body)
      for (const { event, data } of events) t.equal(data.type, event)
      t.same(
        events.map(({ event }) => event),
        [
          ...['message_start', 'content_block_start', 'ping', 'content_block_delta', 'content_block_delta'],
          ...['content_block_stop', 'message_delta', 'message_stop'],
        ],
      )
      const message = events[0]?.data.message
      t.match(message, {
        id: /^msg_[0-9a-f]{24}$/,
        type: 'message',
        role: 'assistant',
        model: 'sim',
        content: { length: 0 },
      })
      t.match(message, { stop_reason: null, stop_sequence: null })
      t.same(Object.keys(message?.usage ?? {}).sort(), [
        ...['cache_creation', 'cache_creation_input_tokens', 'cache_read_input_tokens', 'input_tokens'],
        ...['output_tokens', 'service_tier'],
      ])
      t.equal(message?.usage?.output_tokens, 1, 'a placeholder')
      t.same(events[1]?.data, {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'text', text: '' },
      })
      t.match(events[3]?.data, { index: 0, delta: { type: 'text_delta', text: String } })
      t.same(events[6]?.data.delta, { stop_reason: 'end_turn', stop_sequence: null })
      t.equal(events[6]?.data.usage?.output_tokens, 2)
    })

    t.test('whole and streamed say the same', async (t) => {
      const options = { fields: { tools: TOOLS, ...THINKING } }
      for (const directives of ['@tokens=5', '@tool_calls=3', '@reasoning=3,reasoning_sealed', '@tokens=0']) {
        const whole = jsonOf(await askMessages(url, directives, options))
        const streamed = assembled(
          eventsOf((await askMessages(url, directives, { ...options, stream: true })).body),
        )
        t.match(whole, { ...streamed, usage: Object }, directives)
        t.equal(streamed.content.length, whole.content?.length)
      }
    })

    t.test('a tool without arguments sends an empty piece, others their JSON in pieces', async (t) => {
      const { body } = await askMessages(url, '@tool_calls=2', { stream: true, fields: { tools: TOOLS } })
      const pieces = (index: number) =>
        eventsOf(body)
          .filter(({ event, data }) => event === 'content_block_delta' && Number(data.index) === index)
          .map(({ data }) => data.delta?.partial_json)
      t.same(pieces(0), [''])
      t.equal(pieces(1)[0], '')
      t.match(JSON.parse(pieces(1).join('')), { city: String })
      t.match(jsonOf(await askMessages(url, '@tool_calls=2', { fields: { tools: TOOLS } })), {
        stop_reason: 'tool_use',
        content: [
          { type: 'tool_use', id: /^toolu_/, name: 'now', input: {} },
          { type: 'tool_use', id: /^toolu_/, name: 'weather', input: { city: String } },
        ],
      })
    })

    t.test('thinking leads, is signed, and may be omitted or sealed', async (t) => {
      const think = async (directives: string, thinking: object) =>
        jsonOf(await askMessages(url, directives, { fields: { thinking } }))
      const on = THINKING.thinking
      t.match(await think('@reasoning=3', on), {
        content: [{ type: 'thinking', thinking: /\S/, signature: /^[\w+/]{80,}/ }, { type: 'text' }],
        usage: { output_tokens: 67, output_tokens_details: { thinking_tokens: 3 } },
      })
      t.match(await think('', { type: 'adaptive', display: 'omitted' }), {
        content: [{ type: 'thinking', thinking: '' }, { type: 'text' }],
        usage: { output_tokens: 64 + 16 },
      })
      t.match(await think('@reasoning=3,reasoning_text=false,reasoning_sealed', { type: 'disabled' }), {
        content: [{ type: 'redacted_thinking', data: String }, { type: 'text' }],
      })
      t.match(await think('', { type: 'disabled' }), { content: [{ type: 'text' }] })
    })

    t.test(
      'usage counts the cache apart from input, and is reported where the directive wants it',
      async (t) => {
        const cached = 'prompt_tokens=100,cached=60,cache_write=30,tokens=2'
        const full = { input_tokens: 10, cache_read_input_tokens: 60, cache_creation_input_tokens: 30 }
        t.match(jsonOf(await askMessages(url, `@${cached}`)).usage, { ...full, output_tokens: 2 })
        const told = async (mode: string) => {
          const events = eventsOf((await askMessages(url, `@${cached},usage=${mode}`, { stream: true })).body)
          const start = events[0]?.data.message?.usage
          return [
            start,
            ...events.filter(({ event }) => event === 'message_delta').map(({ data }) => data.usage),
          ]
        }
        t.match(await told('asked'), [
          { ...full, output_tokens: 1 },
          { ...full, output_tokens: 2 },
        ])
        t.same(await told('none'), [undefined, undefined])
        const zero = { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 }
        t.match(await told('zero'), [zero, zero])
        t.match(await told('with_finish'), [zero, { ...full, output_tokens: 2 }])
        t.match(await told('early'), [
          { ...full, output_tokens: 1 },
          { output_tokens: 2 },
          { output_tokens: 2 },
        ])
        t.same((await told('early')).slice(1), [{ output_tokens: 2 }, { output_tokens: 2 }])
        t.notOk('usage' in jsonOf(await askMessages(url, '@usage=none')))
      },
    )

    t.test('an answer ends for the reason that holds', async (t) => {
      const end = async (directives: string, fields: object = {}) =>
        jsonOf(await askMessages(url, directives, { fields }))
      t.match(await end('@tokens=9', { max_tokens: 4 }), {
        stop_reason: 'max_tokens',
        usage: { output_tokens: 4 },
      })
      t.match(await end('@text=to the END', { stop_sequences: ['END'] }), { stop_sequence: 'END' })
    })

    t.test('tokens are counted without an answer', async (t) => {
      const messages = [{ role: 'user', content: 'How is the river?' }]
      const count = (body: object) =>
        post(
          url,
          '/v1/messages/count_tokens',
          JSON.stringify({ model: 'sim', messages, ...body }),
          MESSAGES_HEADERS,
        )
      const bytes = Buffer.byteLength(JSON.stringify(messages)) + Buffer.byteLength('"Be brief."')
      t.same(jsonOf(await count({ system: 'Be brief.' })), { input_tokens: Math.ceil(bytes / 4) })
      t.same(jsonOf(await count({ model: 'sim@prompt_tokens=9' })), { input_tokens: 9 })
      t.match(jsonOf(await count({ max_tokens: 5 })), { error: { message: /^max_tokens: Extra inputs/ } })
    })

    t.test('errors have the public shape, with the id of the request', async (t) => {
      const types = { 400: 'invalid_request_error', 403: 'permission_error', 429: 'rate_limit_error' }
      const more = { 500: 'api_error', 502: 'api_error', 504: 'timeout_error', 529: 'overloaded_error' }
      for (const [status, type] of Object.entries({ ...types, ...more })) {
        const answer = await askMessages(url, `@fault=status:${status}`)
        t.equal(answer.status, Number(status))
        t.match(jsonOf(answer), { type: 'error', error: { type, message: String }, request_id: /^req_/ })
      }
      const [failed] = eventsOf((await askMessages(url, '@fault=stream_error', { stream: true })).body)
      t.match(failed, { event: 'error', data: { type: 'error', error: { type: 'api_error' } } })
    })

    /** The message that the events of a stream add up to. */
    function assembled(events: readonly StreamEvent[]) {
      const content: Record<string, unknown>[] = []
      let json = ''
      let ending: Json | undefined
      for (const { event, data } of events) {
        if (event === 'message_delta') {
          ending = data.delta
          continue
        }
        if (event === 'content_block_start') content.push({ ...data.content_block })
        const block = content.at(-1) ?? {}
        for (const [field, piece] of Object.entries(data.delta ?? {})) {
          if (field === 'partial_json') json += piece
          else if (field !== 'type') block[field] = `${block[field] ?? ''}${piece}`
        }
        if (event !== 'content_block_stop' || block.type !== 'tool_use') continue
        block.input = JSON.parse(json || '{}')
        json = ''
      }
      const { usage: _, ...begun } = { ...events[0]?.data.message }
      return { ...begun, ...ending, content }
    }
  })

  t.test('messages strictness', async (t) => {
    const { url } = await simulatorFor(t)

    const TOOLS = [{ name: 'weather', description: 'Tells it', input_schema: { type: 'object' } }]
    const user = (content: unknown) => ({ role: 'user', content })
    const assistant = (content: unknown) => ({ role: 'assistant', content })
    const system = (content: unknown) => ({ role: 'system', content })
    const text = (said: string) => ({ type: 'text', text: said })
    const use = (id: string) => ({ type: 'tool_use', id, name: 'weather', input: {} })
    const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'Rain.' })
    const thought = (thinking: string) => ({ type: 'thinking', thinking, signature: sign(thinking) })
    const image = (source: object) => user([{ type: 'image', source }])
    const ON = { thinking: { type: 'enabled', budget_tokens: 1024 } }

    /** Messages that are refused, with the words of the refusal. */
    const CONVERSATIONS: readonly (readonly [messages: unknown, message: RegExp])[] = [
      [undefined, /^messages: Field required/],
      [[], /at least one message/],
      [[assistant('Hi')], /first message must use the "user" role/],
      [[{ role: 'system', content: 'Hi' }], /top-level `system` parameter/],
      [[user('Hi'), assistant('Hi'), system('Hi')], /^messages\.2: a `system` message must follow/],
      [[user('Hi'), system('Hi'), user('Hi')], /^messages\.1: a `system` message must follow/],
      [[user('Hi'), system('')], /^messages\.1: all messages must have non-empty content/],
      [[user('Hi'), system([use('a')])], /^messages\.1\.content\.0\.type: Input should be 'text'/],
      [
        [user('Hi'), system('Hi'), assistant([]), user('Hi')],
        /^messages\.2: all messages must have non-empty/,
      ],
      [[user('Hi'), { role: 'tool', content: 'Hi' }], /Unexpected role "tool"/],
      [[{ role: 'user', content: 'Hi', name: 'Ann' }], /^messages\.0\.name: Extra inputs/],
      [[user('')], /^messages\.0: all messages must have non-empty content/],
      [[user([])], /^messages\.0: all messages must have non-empty content/],
      [[user('Hi'), assistant([]), user('Hi')], /^messages\.1: all messages must have non-empty/],
      [[user([text('')])], /text content blocks must be non-empty/],
      [[user([text(' \n')])], /must contain non-whitespace text/],
      [[user([{ type: 'text' }])], /^messages\.0\.content\.0\.text\.text: Field required/],
      [[user([{ type: 'image_url' }])], /^messages\.0\.content\.0: Input tag 'image_url'/],
      [[user([{ ...text('Hi'), id: 1 }])], /^messages\.0\.content\.0\.text\.id: Extra inputs/],
      [[user([use('a')])], /`tool_use` blocks can only be in `assistant` messages/],
      [[user('Hi'), assistant([result('a')])], /`tool_result` blocks can only be in `user` messages/],
      [[user('Hi'), assistant('Hi. ')], /cannot end with trailing whitespace/],
      [
        [image({ type: 'base64', media_type: 'image/bmp', data: 'aGk=' })],
        /media_type: Input should be 'image\/jpeg'/,
      ],
      [
        [image({ type: 'base64', media_type: 'image/png', data: 'data:image/png;base64,aGk=' })],
        /valid base64/,
      ],
      [[image({ type: 'url', url: 'data:image/png;base64,aGk=' })], /Only HTTP\(S\) URLs/],
      [[user('Hi'), assistant([use('a')])], /without `tool_result` blocks immediately after: a\./],
      [
        [user('Hi'), assistant([use('a')]), user('Hi')],
        /without `tool_result` blocks immediately after: a\./,
      ],
      [[user('Hi'), assistant([use('a'), use('b')]), user([result('a')])], /immediately after: b\./],
      [
        [user('Hi'), assistant([use('a'), use('b')]), user([result('a')]), user([result('b')])],
        /immediately after: b\./,
      ],
      [[user('Hi'), assistant([use('a')]), user([text('Here'), result('a')])], /immediately after: a\./],
      [
        [user('Hi'), assistant('Hi'), user([result('a')])],
        /unexpected `tool_use_id` found in `tool_result` blocks: a\./,
      ],
      [[user('Hi'), assistant([use('a')]), user([result('a'), result('a')])], /must have a single result/],
      [
        [user('Hi'), assistant([use('a')]), user([result('a')]), assistant([use('a')]), user([result('a')])],
        /ids must be unique/,
      ],
      [
        [user('Hi'), assistant([{ ...use('a'), id: 'a b' }]), user([result('a b')])],
        /id: String should match/,
      ],
      [
        [user('Hi'), assistant([{ ...use('a'), input: '{}' }]), user([result('a')])],
        /input: Input should be a valid dict/,
      ],
      [
        [user('Hi'), assistant([{ ...thought('So.'), thinking: 'So' }, text('Hi')]), user('Hi')],
        /Invalid `signature`/,
      ],
      [[user('Hi'), assistant([{ type: 'redacted_thinking', data: 'aGk=' }]), user('Hi')], /Invalid `data`/],
    ]

    /** Fields that are refused beside a good conversation. */
    const FIELDS: readonly (readonly [fields: object, message: RegExp])[] = [
      [{ max_tokens: undefined }, /^max_tokens: Field required/],
      [{ max_tokens: 0 }, /^max_tokens: /],
      [{ stream_options: {} }, /^stream_options: Extra inputs are not permitted/],
      [{ system: [text('')] }, /^system: text content blocks must be non-empty/],
      [{ temperature: 1.5 }, /^temperature: range: 0\.\.1/],
      [{ stop_sequences: ['\n'] }, /must contain non-whitespace/],
      [{ ...ON, max_tokens: 1024 }, /`max_tokens` must be greater than `thinking\.budget_tokens`/],
      [{ thinking: { type: 'enabled', budget_tokens: 1000 } }, /greater than or equal to 1024/],
      [{ ...ON, temperature: 0.5 }, /`temperature` may only be set to 1/],
      [{ ...ON, top_k: 4 }, /`top_k` must be unset/],
      [{ ...ON, tools: TOOLS, tool_choice: { type: 'any' } }, /may not be enabled when tool_choice forces/],
      [{ tools: [{ type: 'function', function: { name: 'f' } }] }, /^tools\.0: Input tag 'function'/],
      [{ tools: [{ name: 'f' }] }, /^tools\.0\.custom\.input_schema: Field required/],
      [{ tools: [{ name: 'f', input_schema: { properties: {} } }] }, /input_schema\.type: Field required/],
      [{ tools: [{ name: 'f.g', input_schema: { type: 'object' } }] }, /name: String should match pattern/],
      [{ tools: [...TOOLS, ...TOOLS] }, /must be unique/],
      [{ tools: TOOLS, tool_choice: 'auto' }, /^tool_choice: Input should be a valid dictionary/],
      [{ tools: TOOLS, tool_choice: { type: 'required' } }, /^tool_choice: Input tag 'required'/],
      [{ tools: TOOLS, tool_choice: { type: 'tool', name: 'other' } }, /Tool 'other' not found/],
      [{ tools: TOOLS, tool_choice: { type: 'none', disable_parallel_tool_use: true } }, /Extra inputs/],
      [{ tool_choice: { type: 'auto' } }, /only be specified while providing tools/],
      [{ messages: [user('Hi'), assistant([use('a')]), user([result('a')])] }, /must define tools/],
      [
        { ...ON, tools: TOOLS, messages: [user('Hi'), assistant([use('a')]), user([result('a')])] },
        /Expected `thinking` or `redacted_thinking`, but found `tool_use`/,
      ],
      [
        {
          messages: [
            user(Array.from({ length: 5 }, () => ({ ...text('Hi'), cache_control: { type: 'ephemeral' } }))),
          ],
        },
        /maximum of 4 blocks with cache_control/,
      ],
    ]

    t.test('what the vendor refuses is refused, in its words', async (t) => {
      const conversations = CONVERSATIONS.map(
        ([messages, message]) => [{ messages, tools: TOOLS }, message] as const,
      )
      for (const [fields, message] of [...conversations, ...FIELDS]) {
        const answer = await askMessages(url, '', { fields })
        t.equal(answer.status, 400, JSON.stringify(fields))
        t.match(jsonOf(answer), { type: 'error', error: { type: 'invalid_request_error', message } })
      }
    })

    t.test('what the vendor takes is taken', async (t) => {
      const cached = { ...text('Be brief.'), cache_control: { type: 'ephemeral' } }
      const taken: readonly object[] = [
        { messages: [user('Hi'), user('there'), assistant('Hello'), assistant([])] },
        { messages: [user('Hi'), system('Be brief.'), assistant('Hello'), user('Hi'), system([cached])] },
        { messages: [user('Hi')], system: [cached], metadata: { user_id: 'u' }, top_k: 5, temperature: 1 },
        { messages: [image({ type: 'url', url: 'https://example.com/a.png' })] },
        { messages: [image({ type: 'base64', media_type: 'image/png', data: 'aGk=' })] },
        {
          tools: TOOLS,
          tool_choice: { type: 'auto', disable_parallel_tool_use: true },
          messages: [
            ...[user('Hi'), assistant([text('Let me see.'), use('a'), use('b')])],
            ...[user([result('b'), { ...result('a'), is_error: true }, text('And?')]), assistant('It')],
          ],
        },
        {
          ...ON,
          tools: TOOLS,
          messages: [user('Hi'), assistant([thought('So.'), use('a')]), user([result('a')])],
        },
        { ...ON, messages: [user('Hi'), assistant('Without a thought.'), user('Go on')] },
      ]
      for (const fields of taken)
        t.equal((await askMessages(url, '', { fields })).status, 200, JSON.stringify(fields))
    })

    t.test('a turn of the simulator itself can be handed back', async (t) => {
      const tools = [...TOOLS, { type: 'web_search_20250305', name: 'web_search' }]
      const directives = '@tool_calls=2,reasoning=3,reasoning_sealed'
      const first = jsonOf(await askMessages(url, directives, { fields: { ...ON, tools } }))
      const turn = first.content as unknown as { type: string; id: string }[]
      const results = turn.filter(({ type }) => type === 'tool_use').map(({ id }) => result(id))
      t.equal(results.length, 2)
      const messages = [user('Hi'), assistant(turn), user(results)]
      t.equal((await askMessages(url, '', { fields: { ...ON, tools, messages } })).status, 200)
      const orphaned = turn.filter(({ type }) => type !== 'server_tool_use')
      const refused = await askMessages(url, '', {
        fields: { ...ON, tools, messages: [user('Hi'), assistant(orphaned), user(results)] },
      })
      t.match(jsonOf(refused), { error: { message: /corresponding `server_tool_use`/ } })
    })

    t.test('key and version are required in their headers', async (t) => {
      const body = JSON.stringify({ model: 'sim', max_tokens: 9, messages: [user('Hi')] })
      const { 'x-api-key': key, 'anthropic-version': version } = MESSAGES_HEADERS
      const withoutVersion = await post(url, '/v1/messages', body, { 'x-api-key': key })
      t.equal(withoutVersion.status, 400)
      t.match(jsonOf(withoutVersion), { error: { message: 'anthropic-version: header is required' } })
      const versioned = { 'anthropic-version': version }
      const byBearer = await post(url, '/v1/messages', body, { ...versioned, authorization: `Bearer ${key}` })
      t.equal(byBearer.status, 200)
      const withoutKey = await post(url, '/v1/messages', body, versioned)
      t.equal(withoutKey.status, 401)
      t.match(jsonOf(withoutKey), { error: { type: 'authentication_error' } })
      const unknown = await post(url, '/v1/messages', body.replace('"sim"', '"other"'), MESSAGES_HEADERS)
      t.equal(unknown.status, 404)
      t.match(jsonOf(unknown), { error: { type: 'not_found_error', message: 'model: other' } })
    })
  })
})

t.test('generate content', async (t) => {
  // The simulated generate-content protocol.
  t.test('generate content shapes', async (t) => {
    const { url } = await simulatorFor(t)

    const ask = askGenerateContent('?alt=sse')
    const TOOLS = [
      {
        functionDeclarations: [
          { name: 'weather', parameters: { type: 'OBJECT', properties: { city: { type: 'STRING' } } } },
        ],
      },
    ]
    const think = (thinkingConfig: object) => ({ generationConfig: { thinkingConfig } })

    t.test('a stream is bare events with CRLF, usage on each, and an end without parts', async (t) => {
      const answer = await ask(url, '@tokens=2,prompt_tokens=10', { stream: true })
      t.match(answer.head, /content-type: text\/event-stream/i)
      t.match(answer.body.toString(), /^data: \{.*\}\r\n\r\ndata: /)
      const events = eventsOf(answer.body)
      t.ok(events.every(({ event }) => event === null))
      const [first, second, end] = events.map(({ data }) => data)
      t.match(first, {
        candidates: [{ content: { parts: [{ text: String }], role: 'model' }, index: 0 }],
        usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 1, totalTokenCount: 11 },
        modelVersion: 'sim',
        responseId: /^[0-9a-f]{24}$/,
      })
      t.match(second?.usageMetadata, { candidatesTokenCount: 2, totalTokenCount: 12 })
      t.same(end?.candidates, [{ content: { role: 'model' }, finishReason: 'STOP', index: 0 }])
      t.same(end?.usageMetadata, second?.usageMetadata)
      t.equal(events.length, 3)
    })

    t.test('without alt=sse a stream is one JSON array, whatever ends it', async (t) => {
      const askArray = askGenerateContent('')
      const answer = await askArray(url, '@tokens=3', { stream: true })
      t.match(answer.head, /content-type: application\/json/i)
      const sse = await ask(url, '@tokens=3', { stream: true })
      t.same(
        jsonOf(answer),
        eventsOf(sse.body).map(({ data }) => data),
      )
      const failed = jsonOf(await askArray(url, '@tokens=3,fault=stream_error:1', { stream: true }))
      t.match(failed, [{ candidates: Array }, { error: { code: 500, status: 'INTERNAL' } }])
    })

    t.test('whole and streamed say the same', async (t) => {
      const fields = { tools: TOOLS, ...think({ includeThoughts: true }) }
      for (const directives of ['@tokens=6', '@tool_calls=2', '@tokens=0']) {
        const whole = jsonOf(await ask(url, directives, { fields }))
        const events = eventsOf((await ask(url, directives, { fields, stream: true })).body)
        const parts = events.flatMap(({ data }) => partsOf(data))
        t.same(parts.map(textOf).join(''), partsOf(whole).map(textOf).join(''), directives)
        t.same(
          parts.filter(({ functionCall }) => functionCall),
          partsOf(whole).filter(({ functionCall }) => functionCall),
        )
        t.same(events.at(-1)?.data.usageMetadata, whole.usageMetadata)
        t.match(whole.candidates, [
          { finishReason: 'STOP', content: { parts: [{ thought: true, text: /\S/ }] } },
        ])
      }
    })

    t.test('calls are whole parts, the first of them signed', async (t) => {
      const fields = { tools: TOOLS }
      const parts = partsOf(jsonOf(await ask(url, '@tool_calls=2', { fields })))
      t.match(parts, [
        { functionCall: { name: 'weather', args: { city: String } }, thoughtSignature: String },
        { functionCall: { name: 'weather', args: { city: String } } },
      ])
      t.notOk('thoughtSignature' in (parts[1] ?? {}))
      const forced = { tools: TOOLS, toolConfig: { functionCallingConfig: { mode: 'ANY' } } }
      t.match(partsOf(jsonOf(await ask(url, '', { fields: forced }))), [
        { functionCall: { name: 'weather' } },
      ])
      const signed = eventsOf((await ask(url, '-sig@tokens=1', { stream: true })).body).at(-1)?.data
      t.match(signed?.candidates, [{ content: { parts: [{ text: '', thoughtSignature: String }] } }])
    })

    t.test('usage tells thoughts and cache apart, each only where there is any', async (t) => {
      const usage = async (directives: string) => jsonOf(await ask(url, directives)).usageMetadata
      t.match(await usage('@prompt_tokens=50,cached=20,reasoning=5,tokens=3'), {
        promptTokenCount: 50,
        cachedContentTokenCount: 20,
        thoughtsTokenCount: 5,
        candidatesTokenCount: 3,
        totalTokenCount: 58,
      })
      t.same(Object.keys((await usage('@tokens=1')) ?? {}), [
        ...['promptTokenCount', 'candidatesTokenCount', 'totalTokenCount', 'promptTokensDetails'],
      ])
      const told = async (mode: string) => {
        const { body } = await ask(url, `@tokens=1,usage=${mode}`, { stream: true })
        return eventsOf(body).map(
          ({ data }) => data.usageMetadata?.candidatesTokenCount ?? data.usageMetadata?.totalTokenCount,
        )
      }
      t.same(await told('asked'), [1, 1])
      t.same(await told('none'), [undefined, undefined])
      t.same(await told('zero'), [0, 0])
      t.same(await told('with_finish'), [undefined, 1])
    })

    t.test('an answer ends as it must', async (t) => {
      const ending = async (directives: string, generationConfig: object = {}) =>
        jsonOf(await ask(url, directives, { fields: { generationConfig } })).candidates
      t.match(await ending('@tokens=9', { maxOutputTokens: 4 }), [{ finishReason: 'MAX_TOKENS' }])
      t.match(await ending('@tokens=1', { candidateCount: 2 }), [{ index: 0 }, { index: 1 }])
    })

    t.test('JSON is answered where it is asked for', async (t) => {
      const schema = { type: 'OBJECT', properties: { city: { type: 'STRING' }, days: { type: 'INTEGER' } } }
      for (const field of ['responseSchema', 'responseJsonSchema']) {
        const generationConfig = { responseMimeType: 'application/json', [field]: schema }
        const [part] = partsOf(jsonOf(await ask(url, '', { fields: { generationConfig } })))
        t.match(JSON.parse(textOf(part ?? {})), { city: String, days: Number })
      }
    })

    t.test('errors have the public shape', async (t) => {
      const names = { 400: 'INVALID_ARGUMENT', 403: 'PERMISSION_DENIED', 429: 'RESOURCE_EXHAUSTED' }
      const more = { 500: 'INTERNAL', 503: 'UNAVAILABLE', 504: 'DEADLINE_EXCEEDED' }
      for (const [status, name] of Object.entries({ ...names, ...more })) {
        const answer = await ask(url, `@fault=status:${status}`)
        t.equal(answer.status, Number(status))
        t.match(jsonOf(answer), { error: { code: Number(status), message: String, status: name } })
      }
      const limited = jsonOf(await ask(url, '@fault=status:429,retry_after=7'))
      t.match(limited.error?.details, [{ retryDelay: '7s' }])
    })

    function partsOf(body: Json): Json[] {
      const candidates = body.candidates as unknown as { content: { parts?: Json[] } }[]
      return candidates.flatMap(({ content }) => content.parts ?? [])
    }

    function textOf({ text }: Json): string {
      return text === undefined ? '' : String(text)
    }
  })

  t.test('generate content strictness', async (t) => {
    const { url } = await simulatorFor(t)

    const ask = askGenerateContent('')
    const user = (...parts: object[]) => ({ role: 'user', parts })
    const model = (...parts: object[]) => ({ role: 'model', parts })
    const HI = user({ text: 'Hi' })
    const call = (name: string, thoughtSignature?: string) => ({
      functionCall: { name, args: {} },
      ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
    })
    const response = (name: string) => ({ functionResponse: { name, response: { result: 'Rain.' } } })
    const declare = (...functionDeclarations: object[]) => ({ tools: [{ functionDeclarations }] })
    const withParameters = (parameters: unknown) => declare({ name: 'f', parameters })
    const property = (schema: object) => withParameters({ type: 'object', properties: { a: schema } })
    const config = (generationConfig: object) => ({ generationConfig })
    const calling = (functionCallingConfig: object) => ({ toolConfig: { functionCallingConfig } })

    /** Requests that are refused, with the words of the refusal. */
    const REFUSED: readonly (readonly [fields: object, message: RegExp])[] = [
      [{ contents: undefined }, /contents is not specified/],
      [{ contents: [] }, /contents is not specified/],
      [{ contents: [{ role: 'assistant', parts: [{ text: 'Hi' }] }] }, /valid role: user, model/],
      [{ contents: [user()] }, /contents\.parts must not be empty/],
      [{ contents: [user({})] }, /must have one initialized field/],
      [{ contents: [user({ thought: true })] }, /must have one initialized field/],
      [
        { contents: [user({ type: 'text', text: 'Hi' })] },
        /Unknown name "type" at 'contents\[0\]\.parts\[0\]'/,
      ],
      [
        { contents: [user({ text: 'Hi', inlineData: { mimeType: 'image/png', data: 'aGk=' } })] },
        /already set/,
      ],
      [
        { contents: [user({ inlineData: { mimeType: 'image/png', data: 'a GE' } })] },
        /Base64 decoding failed/,
      ],
      [{ contents: [user({ inlineData: { data: 'aGk=' } })] }, /Unsupported MIME type/],
      [{ messages: [] }, /Unknown name "messages": Cannot find field/],
      [{ systemInstruction: { parts: [] } }, /system_instruction\.parts: must not be empty/],
      [
        { contents: [model(call('f')), user(response('f'))] },
        /function call turn comes immediately after a user turn/,
      ],
      [
        { contents: [HI, model({ text: 'So' }), model(call('f')), user(response('f'))] },
        /immediately after a user turn/,
      ],
      [
        { contents: [HI, user(response('f'))] },
        /function response turn comes immediately after a function call/,
      ],
      [{ contents: [HI, model(call('f')), HI] }, /number of function response parts is equal/],
      [
        { contents: [HI, model(call('f'), call('g')), user(response('f'))] },
        /number of function response parts/,
      ],
      [{ contents: [HI, model(call('f')), user(response('call_1'))] }, /names match the function call names/],
      [
        { contents: [HI, model(call('f')), user({ functionResponse: { name: 'f', response: 'Rain.' } })] },
        /Struct/,
      ],
      [{ contents: [HI, model({ functionCall: { name: 'f', args: '{}' } }), user(response('f'))] }, /Struct/],
      [withParameters({ type: 'object', $ref: '#/$defs/a' }), /Unknown name "\$ref" at .*parameters'/],
      [property({ type: 'string', const: 'a' }), /Unknown name "const" at .*parameters\.properties\['a'\]'/],
      [property({ type: 'object', additionalProperties: false }), /Unknown name "additionalProperties"/],
      [property({ allOf: [] }), /Unknown name "allOf"/],
      [property({ type: ['string', 'null'] }), /cannot start list/],
      [property({ type: 'text' }), /v1beta\.Type\), "text"/],
      [property({ description: 'No type' }), /type: must be specified/],
      [property({ type: 'integer', enum: ['1'] }), /only allowed for STRING type/],
      [property({ type: 'string', enum: [1] }), /TYPE_STRING\), 1/],
      [property({ type: 'string', format: 'uri' }), /only 'enum' and 'date-time' are supported/],
      [property({ type: 'array' }), /items: missing field/],
      [property({ anyOf: [{ type: 'string' }, { type: 'array' }] }), /any_of\[1\]\.items: missing field/],
      [
        withParameters({ type: 'object', properties: { a: { type: 'string' } }, required: ['b'] }),
        /property is not defined/,
      ],
      [withParameters({ type: 'object', properties: {} }), /should be non-empty for OBJECT type/],
      [declare({ name: '1f' }), /Invalid function name/],
      [declare({ name: 'f' }, { name: 'f' }), /Duplicate function declaration found: f/],
      [
        declare({ name: 'f', parametersJsonSchema: {}, parameters: { type: 'string' } }),
        /mutually exclusive/,
      ],
      [{ ...declare({ name: 'f' }), ...calling({ mode: 'required' }) }, /function_calling_config\.mode/],
      [
        { ...declare({ name: 'f' }), ...calling({ mode: 'AUTO', allowedFunctionNames: ['f'] }) },
        /mode is ANY/,
      ],
      [
        { ...declare({ name: 'f' }), ...calling({ mode: 'ANY', allowedFunctionNames: ['g'] }) },
        /not found in the function/,
      ],
      [calling({ mode: 'ANY' }), /without function_declarations/],
      [config({ max_tokens: 5 }), /Unknown name "max_tokens" at 'generation_config'/],
      [config({ maxOutputTokens: 0 }), /range \[1, /],
      [config({ stopSequences: ['1', '2', '3', '4', '5', '6'] }), /stop sequences must not exceed 5/],
      [config({ temperature: 3 }), /range \[0\.0, 2\.0\]/],
      [config({ responseSchema: { type: 'string' } }), /only supported with response_mime_type/],
      [
        config({ thinkingConfig: { thinkingBudget: 5, thinkingLevel: 'low' } }),
        /only one of thinking budget/,
      ],
    ]

    t.test('what the vendor refuses is refused, in its words', async (t) => {
      for (const [fields, message] of REFUSED) {
        const answer = await ask(url, '', { fields })
        t.equal(answer.status, 400, JSON.stringify(fields))
        t.match(jsonOf(answer), { error: { code: 400, status: 'INVALID_ARGUMENT', message } })
      }
    })

    t.test('what the vendor takes is taken, in either spelling', async (t) => {
      const schema = {
        type: 'OBJECT',
        properties: {
          a: { type: 'string', nullable: true, enum: ['x'], format: 'enum' },
          b: { type: 'ARRAY', items: { anyOf: [{ type: 'integer' }, { type: 'object' }] } },
        },
        required: ['a'],
      }
      const loose = { $defs: { a: { const: 1 } }, $ref: '#/$defs/a', additionalProperties: false }
      const taken: readonly object[] = [
        {
          system_instruction: { parts: [{ text: 'Be brief.' }] },
          generation_config: { max_output_tokens: 5 },
        },
        {
          ...declare({ name: 'f', parameters: schema }),
          ...calling({ mode: 'ANY', allowedFunctionNames: ['f'] }),
        },
        declare({ name: 'f', parametersJsonSchema: loose }, { name: 'g' }),
        { contents: [HI, HI, model({ text: 'Hi' }), model({ text: 'Hi', thought: true }), HI] },
        { contents: [HI, model({ text: 'So' }, call('f'), call('g')), user(response('g'), response('f'))] },
        {
          contents: [
            user(
              { inlineData: { mimeType: 'image/png', data: 'aGk=' } },
              { fileData: { fileUri: 'https://example.com/a.png' } },
            ),
          ],
        },
        config({
          responseMimeType: 'application/json',
          responseJsonSchema: loose,
          thinkingConfig: { thinkingLevel: 'low' },
        }),
      ]
      for (const fields of taken)
        t.equal((await ask(url, '', { fields })).status, 200, JSON.stringify(fields))
    })

    t.test('a signing model wants the signatures of the current turn, and no others', async (t) => {
      const statusOf = async (contents: object[], directives = '-sig') => {
        const answer = await ask(url, directives, { fields: { contents } })
        return answer.status === 200 ? 200 : jsonOf(answer).error?.message
      }
      const unsigned = [HI, model(call('f')), user(response('f'))]
      t.match(await statusOf(unsigned), /missing a thought_signature .*default_api:f/)
      t.equal(await statusOf(unsigned, ''), 200)
      t.equal(await statusOf([...unsigned, model({ text: 'Rain.' }), HI]), 200)
      t.match(await statusOf([HI, model(call('f', 'aGk=')), user(response('f'))]), /signature is not valid/)
      t.equal(
        await statusOf([HI, model(call('f', 'skip_thought_signature_validator')), user(response('f'))]),
        200,
      )
      const turn = jsonOf(await ask(url, '-sig@tool_calls=2', { fields: declare({ name: 'f' }) }))
      const [candidate] = turn.candidates as unknown as Json[]
      const own = candidate?.content as unknown as object
      t.equal(await statusOf([HI, own, user(response('f'), response('f'))]), 200)
    })

    t.test('a key is required, in its header or the query', async (t) => {
      const path = '/v1beta/models/sim:generateContent'
      const body = JSON.stringify({ contents: [HI] })
      const refused = await post(url, path, body, { authorization: 'Bearer k' })
      t.equal(refused.status, 403)
      t.match(jsonOf(refused), { error: { status: 'PERMISSION_DENIED' } })
      t.equal((await post(url, `${path}?key=k`, body)).status, 200)
      t.equal((await post(url, path.replace('sim', 'other'), body, { 'x-goog-api-key': 'k' })).status, 404)
      const encoded = `/v1beta/models/${encodeURIComponent('sim@fault=status:503')}:generateContent?key=k`
      t.equal((await post(url, encoded, body)).status, 503)
      t.equal((await post(url, '/v1beta/models/%ff:generateContent?key=k', body)).status, 400)
    })
  })
})

t.test('responses', async (t) => {
  // The simulated responses protocol.
  t.test('responses shapes', async (t) => {
    const { url } = await simulatorFor(t)

    const TOOLS = [
      {
        type: 'function',
        name: 'weather',
        parameters: { type: 'object', properties: { city: { type: 'string' } } },
      },
    ]

    t.test('a stream tells the response, its items, and its end, numbered from 0', async (t) => {
      const answer = await askResponses(url, '@tokens=2', { stream: true })
      t.match(answer.head, /content-type: text\/event-stream; charset=utf-8/i)
      const events = eventsOf(answer.body)
      t.same(
        events.map(({ event }) => event),
        [
          ...['response.created', 'response.in_progress', 'response.output_item.added'],
          ...['response.content_part.added', 'response.output_text.delta', 'response.output_text.delta'],
          ...['response.output_text.done', 'response.content_part.done', 'response.output_item.done'],
          'response.completed',
        ],
      )
      for (const [index, { event, data }] of events.entries()) {
        t.equal(data.type, event)
        t.equal(data.sequence_number, index)
      }
      const created = events[0]?.data.response
      t.match(created, {
        id: /^resp_[0-9a-f]{24}$/,
        object: 'response',
        status: 'in_progress',
        output: { length: 0 },
        usage: null,
      })
      t.match(created, { model: 'sim', instructions: 'Be brief.', error: null, incomplete_details: null })
      t.match(created, {
        reasoning: { effort: null, summary: null },
        tool_choice: 'auto',
        parallel_tool_calls: true,
      })
      const itemId = events[2]?.data.item?.id
      t.match(itemId, /^msg_[0-9a-f]{24}$/)
      for (const { data } of events.slice(3, 8))
        t.match(data, { item_id: itemId, output_index: 0, content_index: 0 })
      t.match(events[9]?.data.response, { status: 'completed', usage: { output_tokens: 2 } })
    })

    t.test('whole and streamed say the same', async (t) => {
      const fields = { tools: TOOLS, reasoning: { effort: 'low', summary: 'auto' } }
      for (const directives of [
        '@tokens=5',
        '@tool_calls=2',
        '@tokens=0',
        '@reasoning=3,reasoning_text=false',
      ]) {
        const whole = jsonOf(await askResponses(url, directives, { fields }))
        const events = eventsOf((await askResponses(url, directives, { fields, stream: true })).body)
        t.same(events.at(-1)?.data.response, whole, directives)
        const done = events.filter(({ event }) => event === 'response.output_item.done')
        t.same(
          done.map(({ data }) => data.item),
          whole.output,
        )
        t.same(textsOf(events, 'delta'), textsOf(events, 'done'), 'the pieces are the whole')
      }
    })

    t.test('reasoning comes first: hidden, as a summary, or sealed', async (t) => {
      const items = async (directives: string, fields: object = {}) =>
        jsonOf(await askResponses(url, directives, { fields })).output
      const message = { type: 'message' }
      t.match(await items('', { reasoning: { effort: 'high' } }), [
        { type: 'reasoning', summary: { length: 0 } },
        message,
      ])
      t.match(await items('@reasoning=3,reasoning_text'), [
        { id: /^rs_/, type: 'reasoning', summary: [{ type: 'summary_text', text: /\S/ }] },
        message,
      ])
      const include = ['reasoning.encrypted_content']
      t.match(await items('@reasoning=3', { include }), [
        { type: 'reasoning', encrypted_content: String },
        message,
      ])
      t.match(await items('', { reasoning: { effort: 'none' } }), [message])
    })

    t.test('functions are called by items of their own', async (t) => {
      const whole = jsonOf(await askResponses(url, '@tool_calls=2', { fields: { tools: TOOLS } }))
      const called = {
        type: 'function_call',
        id: /^fc_/,
        call_id: /^call_/,
        name: 'weather',
        status: 'completed',
      }
      t.match(whole.output, [called, called])
      for (const { arguments: json } of whole.output as unknown as { arguments: string }[])
        t.match(JSON.parse(json), { city: String })
      const named = { tools: TOOLS, tool_choice: { type: 'function', name: 'weather' } }
      t.match(jsonOf(await askResponses(url, '', { fields: named })).output, [called])
    })

    t.test(
      'usage has the names of this interface, and is reported where the directive wants it',
      async (t) => {
        const input = [{ role: 'user', content: 'How is the river?' }]
        const bytes = Buffer.byteLength(JSON.stringify(input)) + Buffer.byteLength('"Be brief."')
        t.same(jsonOf(await askResponses(url, '@tokens=3,reasoning=4,cached=5')).usage, {
          input_tokens: Math.ceil(bytes / 4),
          input_tokens_details: { cached_tokens: 5 },
          output_tokens: 7,
          output_tokens_details: { reasoning_tokens: 4 },
          total_tokens: Math.ceil(bytes / 4) + 7,
        })
        const written = jsonOf(await askResponses(url, '@cache_write=2')).usage
        t.equal(written?.input_tokens_details?.cache_write_tokens, 2)
        const told = async (mode: string) => {
          const { body } = await askResponses(url, `@tokens=3,usage=${mode}`, { stream: true })
          const events = eventsOf(body)
          return [events[0], events.at(-1)].map((event) => event?.data.response?.usage?.output_tokens)
        }
        t.same(await told('asked'), [undefined, 3])
        t.same(await told('none'), [undefined, undefined])
        t.same(await told('zero'), [undefined, 0])
        t.same(await told('early'), [3, 3])
      },
    )

    t.test('an answer that is cut is incomplete', async (t) => {
      const cut = { max_output_tokens: 16 }
      const incomplete = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
      const whole = jsonOf(await askResponses(url, '@tokens=50', { fields: cut }))
      t.match(whole, { ...incomplete, output: [{ status: 'incomplete' }], usage: { output_tokens: 16 } })
      const events = eventsOf((await askResponses(url, '@tokens=50', { fields: cut, stream: true })).body)
      t.match(events.at(-1), { event: 'response.incomplete', data: { response: incomplete } })
      const [, , error] = eventsOf(
        (await askResponses(url, '@fault=stream_error:1', { stream: true })).body,
      ).slice(-3)
      t.match(error, {
        event: 'error',
        data: { type: 'error', code: 'server_error', sequence_number: Number },
      })
    })

    t.test('an error event goes on with the numbers', async (t) => {
      const events = eventsOf((await askResponses(url, '@fault=stream_error:2', { stream: true })).body)
      t.same(
        events.map(({ data }) => data.sequence_number),
        events.map((_, index) => index),
      )
      t.equal(events.at(-1)?.event, 'error')
    })

    t.test('JSON is answered where it is asked for', async (t) => {
      const schema = { type: 'object', properties: { days: { type: 'integer' } } }
      const text = { format: { type: 'json_schema', name: 'forecast', schema } }
      const { output } = jsonOf(await askResponses(url, '', { fields: { text } }))
      const [message] = output as unknown as { content: { text: string }[] }[]
      t.match(JSON.parse(message?.content[0]?.text ?? ''), { days: Number })
    })

    /** What the events of this kind say of text, reasoning and arguments together, by item. */
    function textsOf(events: readonly StreamEvent[], kind: 'delta' | 'done'): Record<string, string> {
      const texts: Record<string, string> = {}
      const said = /^response\.(output_text|reasoning_summary_text|function_call_arguments)\.(delta|done)$/
      for (const { event, data } of events) {
        const found = said.exec(event ?? '')
        if (found?.[2] !== kind) continue
        const text = data.delta ?? data.text ?? data.arguments ?? ''
        const item = String(data.item_id)
        texts[item] = `${texts[item] ?? ''}${text}`
      }
      return Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== ''))
    }
  })

  t.test('responses strictness', async (t) => {
    const { url } = await simulatorFor(t)

    const user = (content: unknown) => ({ role: 'user', content })
    const HI = user('Hi')
    const call = { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' }
    const output = { type: 'function_call_output', call_id: 'call_1', output: 'Rain.' }
    const FUNCTION = { type: 'function', name: 'f', parameters: { type: 'object' } }
    const thought = { type: 'reasoning', id: 'rs_1', summary: [] }

    /** Requests that are refused, with the field that is named and the words of the refusal. */
    const REFUSED: readonly (readonly [fields: object, param: string, message: RegExp])[] = [
      [{ messages: [HI] }, 'messages', /Unknown parameter: 'messages'/],
      [{ max_tokens: 5 }, 'max_tokens', /Unknown parameter/],
      [{ model: undefined }, 'model', /Missing required parameter: 'model'/],
      [{ input: undefined }, 'input', /Missing required parameter: 'input'/],
      [{ input: [] }, 'input', /empty array/],
      [{ input: [{ role: 'tool', content: 'Hi' }] }, 'input[0]', /Invalid value: 'tool'/],
      [{ input: [{ content: 'Hi' }] }, 'input[0].role', /Missing required/],
      [{ input: [{ role: 'user' }] }, 'input[0].content', /Missing required/],
      [
        { input: [user([{ type: 'text', text: 'Hi' }])] },
        'input[0].content[0]',
        /Invalid value: 'text'.*'input_text'/,
      ],
      [
        { input: [{ role: 'assistant', content: [{ type: 'input_text', text: 'Hi' }] }, HI] },
        'input[0].content[0]',
        /'output_text'/,
      ],
      [
        { input: [user([{ type: 'input_image', image_url: { url: 'https://example.com/a.png' } }])] },
        'input[0].content[0].image_url',
        /got an object/,
      ],
      [
        { input: [user([{ type: 'input_image', image_url: 'file:///a.png' }])] },
        'input[0].content[0].image_url',
        /valid URL/,
      ],
      [{ input: [{ type: 'tool_call' }] }, 'input[0].type', /Invalid value: 'tool_call'/],
      [{ input: [HI, { ...call, call_id: undefined }] }, 'input[1].call_id', /Missing required/],
      [{ input: [HI, { ...call, arguments: {} }] }, 'input[1].arguments', /expected a string/],
      [{ input: [HI, { ...call, id: 'call_1' }, output] }, 'input[1].id', /begins with 'fc'/],
      [{ input: [HI, call] }, 'input', /No tool output found for function call call_1/],
      [{ input: [HI, output] }, 'input', /No tool call found for function call output with call_id call_1/],
      [{ input: [HI, call, output, output] }, 'input', /No tool call found/],
      [{ input: [HI, thought, HI] }, 'input', /'rs_1' of type 'reasoning' was provided without its required/],
      [{ tools: [{ type: 'function', function: { name: 'f' } }] }, 'tools[0].name', /Missing required/],
      [{ tools: [{ name: 'f' }] }, 'tools[0].type', /Missing required/],
      [{ tools: [{ type: 'function', name: 'a b' }] }, 'tools[0].name', /does not match pattern/],
      [
        { tools: [FUNCTION], tool_choice: { type: 'function', function: { name: 'f' } } },
        'tool_choice.name',
        /Missing/,
      ],
      [
        { tools: [FUNCTION], tool_choice: { type: 'function', name: 'g' } },
        'tool_choice',
        /not found in 'tools'/,
      ],
      [{ tools: [FUNCTION], tool_choice: { type: 'web_search' } }, 'tool_choice', /not found in 'tools'/],
      [{ tool_choice: 'required' }, 'tool_choice', /must be specified with 'tools'/],
      [{ max_output_tokens: 15 }, 'max_output_tokens', /Expected a value >= 16/],
      [{ temperature: 2.5 }, 'temperature', /from 0 to 2/],
      [{ reasoning: { effort: 'most' } }, 'reasoning.effort', /Invalid value: 'most'/],
      [{ text: { format: { type: 'json_schema', schema: {} } } }, 'text.format.name', /Missing required/],
      [{ previous_response_id: 'resp_1' }, 'previous_response_id', /not found/],
    ]

    t.test('what the vendor refuses is refused, with the field', async (t) => {
      for (const [fields, param, message] of REFUSED) {
        const answer = await askResponses(url, '', { fields })
        t.equal(answer.status, 400, JSON.stringify(fields))
        t.match(jsonOf(answer), { error: { message, type: 'invalid_request_error', param, code: null } })
      }
    })

    t.test('what the vendor takes is taken', async (t) => {
      const image = { type: 'input_image', image_url: 'data:image/png;base64,aGk=', detail: 'low' }
      const taken: readonly object[] = [
        { input: 'Hi', instructions: undefined },
        { input: [user([{ type: 'input_text', text: 'Hi' }, image])], max_output_tokens: 16, store: false },
        { input: [{ type: 'message', role: 'developer', content: 'Be brief.' }, HI] },
        {
          input: [
            HI,
            thought,
            call,
            { ...call, call_id: 'call_2' },
            { ...output, call_id: 'call_2' },
            output,
          ],
        },
        {
          input: [
            HI,
            { role: 'assistant', content: [{ type: 'output_text', text: 'Hi', annotations: [] }] },
            HI,
          ],
        },
        { tools: [FUNCTION, { type: 'web_search' }], tool_choice: { type: 'web_search' }, top_p: 0.5 },
      ]
      for (const fields of taken)
        t.equal((await askResponses(url, '', { fields })).status, 200, JSON.stringify(fields))
    })

    t.test('a turn of the simulator itself can be handed back', async (t) => {
      const tools = [FUNCTION, { type: 'web_search' }, { type: 'image_generation' }]
      const first = jsonOf(await askResponses(url, '@tool_calls=1,reasoning=2', { fields: { tools } }))
      const turn = first.output as unknown as { type: string; call_id?: string }[]
      t.same(
        turn.map(({ type }) => type),
        ['reasoning', 'web_search_call', 'image_generation_call', 'function_call'],
      )
      const input = [HI, ...turn, { ...output, call_id: turn.at(-1)?.call_id }]
      t.equal((await askResponses(url, '', { fields: { tools, input } })).status, 200)
    })

    t.test('strict_input refuses a string, and a request without instructions', async (t) => {
      const refusal = async (fields: object) =>
        jsonOf(await askResponses(url, '@strict_input', { fields })).error?.message
      t.equal(await refusal({ input: 'Hi' }), 'Input must be a list.')
      t.equal(await refusal({ instructions: undefined }), "Missing required parameter: 'instructions'.")
      t.equal((await askResponses(url, '@strict_input')).status, 200)
    })

    t.test('an unknown model and a bad key are refused', async (t) => {
      const unknown = await askResponses(url, '', { fields: { model: 'other' } })
      t.equal(unknown.status, 400)
      t.match(jsonOf(unknown), { error: { code: 'model_not_found', param: 'model' } })
      const refused = await askResponses(url, '', { headers: { authorization: 'Bearer sim-bad-key' } })
      t.match(jsonOf(refused), { error: { code: 'invalid_api_key' } })
    })
  })

  t.test('responses with the tools and fields of a coding agent', async (t) => {
    const { url } = await simulatorFor(t)
    const parameters = { type: 'object', properties: {} }
    const ask = (more: object) =>
      fetch(`${url}/v1/responses`, {
        method: 'POST',
        body: JSON.stringify({
          model: 'sim-large',
          client_metadata: { session: 's' },
          tools: [
            { type: 'custom', name: 'patch', format: { type: 'grammar', syntax: 'lark', definition: 'x' } },
            {
              type: 'namespace',
              name: 'agents',
              description: 'd',
              tools: [{ type: 'function', name: 'spawn', parameters }],
            },
            { type: 'tool_search', execution: 'client', description: 'd', parameters },
          ],
          ...more,
        }),
      })
    const response = await ask({ input: 'Hi', simulate: 'tool_calls=2' })
    const answer = (await response.json()) as { output: { call_id: string }[] }
    const [first, second] = answer.output
    t.match(answer.output, [
      { type: 'custom_tool_call', id: /^ctc_/, name: 'patch', input: /./ },
      { type: 'function_call', id: /^fc_/, name: 'spawn', namespace: 'agents', arguments: '{}' },
    ])
    const outputs = [
      { type: 'custom_tool_call_output', call_id: first?.call_id, output: 'Done.' },
      { type: 'function_call_output', call_id: second?.call_id, output: 'Done.' },
    ]
    t.equal((await ask({ input: [...answer.output, ...outputs] })).status, 200)
    t.equal((await ask({ input: [...answer.output, outputs[1]] })).status, 400)
    const stream = await (await ask({ input: 'Hi', simulate: 'tool_calls=1', stream: true })).text()
    t.match(stream, /event: response\.custom_tool_call_input\.delta/)
    t.match(stream, /event: response\.custom_tool_call_input\.done/)
  })

  t.test('responses are continued', async (t) => {
    // What a kept response has left open, the next one answers.
    const { url } = await simulatorFor(t)

    const TOOLS = [{ type: 'function', name: 'weather', parameters: { type: 'object' } }]
    const FORCED = { tools: TOOLS, tool_choice: 'required' }
    const answerTo = (call_id: unknown) => ({ type: 'function_call_output', call_id, output: 'Rain.' })

    const ask = async (fields: object) => jsonOf(await askResponses(url, '', { fields }))
    const calledIn = ({ output }: { readonly output?: unknown }): string =>
      (output as { type: string; call_id: string }[]).find(({ type }) => type === 'function_call')?.call_id ??
      ''
    const post = (path: string, body: object) =>
      fetch(`${url}/v1/conversations${path}`, { method: 'POST', body: JSON.stringify(body) })

    t.test('an output answers the call of the previous response', async (t) => {
      const first = await ask(FORCED)
      const next = await ask({
        tools: TOOLS,
        previous_response_id: first.id,
        input: [answerTo(calledIn(first))],
      })
      t.match(next, { status: 'completed', previous_response_id: first.id, output: [{ type: 'message' }] })
      const last = await ask({ previous_response_id: next.id, input: 'And tomorrow?' })
      t.equal(last.status, 'completed')
      const again = await ask({ previous_response_id: next.id, input: [answerTo(calledIn(first))] })
      t.match(again.error?.message, /^No tool call found for function call output/)
    })

    t.test('a call that nothing answers is refused, whatever comes instead', async (t) => {
      const first = await ask(FORCED)
      const call = calledIn(first)
      for (const input of ['Never mind.', [{ role: 'user', content: 'Never mind.' }]]) {
        const refused = await ask({ previous_response_id: first.id, input })
        t.equal(refused.error?.message, `No tool output found for function call ${call}.`)
      }
    })

    t.test('a conversation holds its calls open as well', async (t) => {
      const { id: conversation } = (await (await post('', {})).json()) as { id: string }
      const first = await ask({ ...FORCED, conversation })
      const refused = await ask({ conversation, input: 'Never mind.' })
      t.match(refused.error?.message, /^No tool output found for function call/)
      const next = await ask({ conversation, input: [answerTo(calledIn(first))] })
      t.equal(next.status, 'completed')
      const second = await ask({ ...FORCED, conversation, input: 'And tomorrow?' })
      const added = await post(`/${conversation}/items`, { items: [answerTo(calledIn(second))] })
      t.equal(added.status, 200)
      t.equal((await ask({ conversation, input: 'So?' })).status, 'completed')
    })

    t.test('another request is another response', async (t) => {
      const requests = [
        {},
        { tools: TOOLS },
        FORCED,
        { max_output_tokens: 16 },
        { metadata: { a: 'b' } },
        { simulate: 'text=Hi' },
      ]
      const answers = await Promise.all(requests.map(ask))
      t.equal(new Set(answers.map(({ id }) => id)).size, requests.length)
      for (const answer of answers)
        t.same(await (await fetch(`${url}/v1/responses/${answer.id}`)).json(), answer, 'each is kept')
      t.same(await Promise.all(requests.map(ask)), answers, 'and the same request has the same')
    })
  })
})
