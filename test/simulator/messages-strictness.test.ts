import t from 'tap'
import { signatureOf } from '../../simulator/dialects/messages/blocks.ts'
import { askMessages, jsonOf, MESSAGES_HEADERS } from './dialects-support.ts'
import { post, simulatorFor } from './support.ts'

const { url } = await simulatorFor(t)

const TOOLS = [{ name: 'weather', description: 'Tells it', input_schema: { type: 'object' } }]
const user = (content: unknown) => ({ role: 'user', content })
const assistant = (content: unknown) => ({ role: 'assistant', content })
const system = (content: unknown) => ({ role: 'system', content })
const text = (said: string) => ({ type: 'text', text: said })
const use = (id: string) => ({ type: 'tool_use', id, name: 'weather', input: {} })
const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'Rain.' })
const thought = (thinking: string) => ({ type: 'thinking', thinking, signature: signatureOf(thinking) })
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
  [[user('Hi'), system('Hi'), assistant([]), user('Hi')], /^messages\.2: all messages must have non-empty/],
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
  [[image({ type: 'base64', media_type: 'image/png', data: 'data:image/png;base64,aGk=' })], /valid base64/],
  [[image({ type: 'url', url: 'data:image/png;base64,aGk=' })], /Only HTTP\(S\) URLs/],
  [[user('Hi'), assistant([use('a')])], /without `tool_result` blocks immediately after: a\./],
  [[user('Hi'), assistant([use('a')]), user('Hi')], /without `tool_result` blocks immediately after: a\./],
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
  [[user('Hi'), assistant([{ ...use('a'), id: 'a b' }]), user([result('a b')])], /id: String should match/],
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
