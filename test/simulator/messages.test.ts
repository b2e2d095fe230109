/** The simulated messages protocol. */
import t from 'tap'
import { sign } from '../../simulator/dialects/messages/blocks.ts'
import {
  askMessages,
  eventsOf,
  type Json,
  jsonOf,
  MESSAGES_HEADERS,
  type StreamEvent,
} from './dialects-support.ts'
import { post, simulatorFor } from './support.ts'

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
