/** "Endpoints": the chat protocols, their fields, their answers and the rules of built-in tools. */
import t, { type Test } from 'tap'
import { CHAT_PROTOCOLS, type ChatProtocol, PLAIN } from '../end-to-end/protocols/support.ts'
import { json } from './scripted-upstream.ts'
import { section, statement, statements } from './statement.ts'
import type { Answer, World } from './world.ts'

const FUNCTION = {
  type: 'function',
  function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
}

const CALL = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } }

/** Fields of each protocol, and a value; all of them reach an upstream of the same protocol as they are. */
const FIELDS: Readonly<Record<ChatProtocol, Readonly<Record<string, unknown>>>> = {
  'chat-completions': {
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls: [CALL] },
      { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
      { role: 'user', content: [{ type: 'text', text: 'bye' }] },
    ],
    max_tokens: 7,
    temperature: 0.7,
    tools: [FUNCTION],
    tool_choice: 'auto',
    response_format: { type: 'json_object' },
  },
  messages: {
    max_tokens: 7,
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [{ type: 'text', text: 'Good day.' }] },
      { role: 'user', content: 'bye' },
    ],
    system: 'Be brief.',
    tools: [{ name: 'weather', description: 'Says it.', input_schema: { type: 'object' } }],
    tool_choice: { type: 'auto' },
  },
  'generate-content': {
    contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
    systemInstruction: { parts: [{ text: 'Be brief.' }] },
    generationConfig: { maxOutputTokens: 7, temperature: 0.7 },
    tools: [{ functionDeclarations: [{ name: 'weather', description: 'Says it.' }] }],
  },
  responses: {
    input: [
      { role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
      { role: 'user', content: 'bye' },
    ],
    instructions: 'Be brief.',
    max_output_tokens: 17,
    reasoning: { effort: 'low' },
    temperature: 0.7,
    top_p: 0.9,
    frequency_penalty: 0.1,
    presence_penalty: 0.2,
    tools: [{ type: 'function', name: 'weather', description: 'Says it.', parameters: { type: 'object' } }],
    tool_choice: 'auto',
    parallel_tool_calls: true,
  },
}

/** What a whole answer holds, by protocol. */
function checkWhole(t: Test, protocol: ChatProtocol, { status, body }: Answer): void {
  t.equal(status, 200)
  switch (protocol) {
    case 'chat-completions':
      t.match(body, {
        id: String,
        object: 'chat.completion',
        created: Number,
        model: String,
        choices: [
          { index: 0, message: { role: 'assistant', content: String }, finish_reason: /stop|length/ },
        ],
        usage: { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 },
      })
      break
    case 'messages':
      t.match(body, {
        id: String,
        type: 'message',
        role: 'assistant',
        model: String,
        content: [{ type: 'text', text: String }],
        stop_reason: String,
        usage: { input_tokens: 10, output_tokens: 4 },
      })
      break
    case 'generate-content':
      t.match(body, {
        candidates: [
          { content: { role: 'model', parts: [{ text: String }] }, finishReason: String, index: 0 },
        ],
        usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 4, totalTokenCount: 14 },
      })
      break
    default:
      t.match(body, {
        id: String,
        object: 'response',
        created_at: Number,
        status: 'completed',
        model: String,
        output: [{ type: 'message', content: [{ type: 'output_text', text: String }] }],
        usage: {
          input_tokens: 10,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: 4,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: 14,
        },
      })
      for (const name of ['instructions', 'reasoning']) t.ok(name in body, name)
  }
}

const SEARCH = { type: 'web_search' }

const DRAW = { type: 'image_generation' }

/** A chat-completions call with these tools: status and code. */
async function toolCall(world: World, model: string, tools: readonly object[], stream: boolean) {
  const client = await world.client()
  const answer = await client.call('chat-completions', model, { stream, more: { tools } })
  return { status: answer.status, code: answer.body?.error?.code }
}

const INVALID = { status: 400, code: 'invalid_request' }

const UNSUPPORTED = { status: 400, code: 'tool_not_supported' }

const FINE = { status: 200, code: undefined }

await section(t, 'Chat endpoints', [
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `The least request is answered whole, in the shape of the protocol (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      checkWhole(t, protocol, await client.call(protocol, `plain-${protocol}`))
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `An alias of an older id is answered as its model (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const answer = await client.call(protocol, `old-${protocol}`)
      checkWhole(t, protocol, answer)
      t.equal((await client.row(answer)).model, `plain-${protocol}`)
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `Every field reaches an upstream of the same protocol as it was sent (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const more = { ...FIELDS[protocol], future_field: { a: [1] } }
      const { word, received } = world.upstream.script((response) => response.writeHead(400).end())
      await client.call(protocol, `script-${protocol}`, { more: { ...more, user_word: word } })
      const body = JSON.parse(received[0]?.text ?? '{}')
      for (const [name, value] of Object.entries(more)) t.same(body[name], value, name)
    },
  ),
  statements(
    ['system', 'user', 'assistant', 'tool'],
    (role) => `A message may have the role ${role} (chat-completions)`,
    async (t, world, role) => {
      const client = await world.client()
      const before = role === 'tool' ? [{ role: 'assistant', content: null, tool_calls: [CALL] }] : []
      const message = { role, content: 'sunny', ...(role === 'tool' && { tool_call_id: 'call_1' }) }
      const more = { messages: [...before, message, { role: 'user', content: 'hi' }] }
      const answer = await client.call('chat-completions', 'plain-chat-completions', { more })
      t.equal(answer.status, 200)
      const other = { messages: [{ role: 'oracle', content: 'hi' }] }
      const refused = await client.call('chat-completions', 'plain-chat-completions', { more: other })
      t.match(refused, { status: 400, body: { error: { code: 'invalid_request' } } })
    },
  ),
  statement('model and messages are required (chat-completions)', async (t, world) => {
    const client = await world.client()
    for (const name of ['model', 'messages']) {
      const more = { [name]: undefined }
      const answer = await client.call('chat-completions', 'plain-chat-completions', { more })
      t.match(answer, { status: 400, body: { error: { code: 'invalid_request' } } }, name)
    }
  }),
  statement('temperature is 0 to 2 (chat-completions)', async (t, world) => {
    const client = await world.client()
    const ask = async (temperature: unknown) =>
      (await client.call('chat-completions', 'plain-chat-completions', { more: { temperature } })).status
    for (const fine of [0, 0.5, 2]) t.equal(await ask(fine), 200, `${fine}`)
    for (const wrong of [-0.1, 2.1, 'warm']) t.equal(await ask(wrong), 400, `${wrong}`)
  }),
  statement(
    'tool_choice is auto, none or an object that selects a function (chat-completions)',
    async (t, world) => {
      const client = await world.client()
      const chosen = { type: 'function', function: { name: 'weather' } }
      for (const tool_choice of ['auto', 'none', chosen]) {
        const more = { tools: [FUNCTION], tool_choice }
        const answer = await client.call('chat-completions', 'plain-chat-completions', { more })
        t.equal(answer.status, 200)
        const call = answer.body.choices[0].message.tool_calls?.[0]
        t.equal(call?.function.name, tool_choice === chosen ? 'weather' : undefined)
      }
    },
  ),
  statement(
    'response_format json_object forces JSON: it reaches the upstream (chat-completions)',
    async (t, world) => {
      const client = await world.client()
      const more = { response_format: { type: 'json_object' } }
      const answer = await client.call('chat-completions', 'plain-chat-completions', { more })
      t.same((await world.received(answer.trace)).response_format, more.response_format)
    },
  ),
  statement('max_tokens caps what is generated (chat-completions)', async (t, world) => {
    const client = await world.client()
    const answer = await client.call('chat-completions', 'plain-chat-completions', {
      more: { max_tokens: 3 },
    })
    t.equal(answer.body.usage.completion_tokens, 3)
  }),
  statement('A built-in tool needs stream true, else 400 invalid_request', async (t, world) => {
    for (const tool of [SEARCH, DRAW]) {
      t.match(await toolCall(world, 'able-chat-completions', [tool], false), INVALID)
      t.match(await toolCall(world, 'able-chat-completions', [tool], true), FINE)
    }
  }),
  statement(
    'A built-in tool without stream is 400 invalid_request whatever the model supports',
    async (t, world) => {
      for (const model of ['toolless', 'plain-messages', 'able-messages', 'plain-generate-content'])
        for (const tool of [SEARCH, DRAW])
          t.match(await toolCall(world, model, [tool], false), INVALID, model)
    },
  ),
  statement(
    'image_generation works where the model and its channel have it, else 400 tool_not_supported',
    async (t, world) => {
      t.match(await toolCall(world, 'sonata-large', [DRAW], true), FINE)
      for (const model of ['toolless', 'sonata-small', 'plain-messages'])
        t.match(await toolCall(world, model, [DRAW], true), UNSUPPORTED, model)
    },
  ),
  statement(
    'web_search works where the model and its channel have it, else 400 tool_not_supported',
    async (t, world) => {
      t.match(await toolCall(world, 'sonata-large', [SEARCH], true), FINE)
      for (const model of ['toolless', 'sonata-small', 'plain-messages'])
        t.match(await toolCall(world, model, [SEARCH], true), UNSUPPORTED, model)
    },
  ),
  statement('Function tools work streaming or not, on any model', async (t, world) => {
    for (const model of ['toolless', 'able-chat-completions', 'plain-messages', 'plain-generate-content'])
      for (const stream of [false, true]) t.match(await toolCall(world, model, [FUNCTION], stream), FINE)
  }),
  statement('model, max_tokens and messages are required (messages)', async (t, world) => {
    const client = await world.client()
    for (const name of ['model', 'max_tokens', 'messages']) {
      const answer = await client.call('messages', 'plain-messages', { more: { [name]: undefined } })
      t.match(answer, { status: 400, body: { error: { type: 'invalid_request_error' } } }, name)
    }
  }),
  statement('tool_choice is of type auto, any or tool with a name (messages)', async (t, world) => {
    const client = await world.client()
    const tools = [{ name: 'weather', description: 'Says it.', input_schema: { type: 'object' } }]
    for (const tool_choice of [{ type: 'auto' }, { type: 'any' }, { type: 'tool', name: 'weather' }]) {
      const answer = await client.call('messages', 'plain-messages', { more: { tools, tool_choice } })
      t.equal(answer.status, 200)
      const isForced = tool_choice.type !== 'auto'
      t.equal(answer.body.content[0].type, isForced ? 'tool_use' : 'text', tool_choice.type)
    }
  }),
  statements(
    ['vendor-version', 'anthropic-version'],
    (name) => `The header of the API version, ${name}, goes on to the upstream (messages)`,
    async (t, world, name) => {
      const client = await world.client()
      const { word, received } = world.upstream.script(json(400, {}))
      const options = { say: word, headers: { [name]: '2026-07-28' } }
      await client.call('messages', 'script-messages', options)
      t.equal(received[0]?.headers['anthropic-version'], '2026-07-28')
    },
  ),
  statement('A call without the version header is served by 2023-06-01 (messages)', async (t, world) => {
    const client = await world.client()
    const { word, received } = world.upstream.script(json(400, {}))
    await client.call('messages', 'script-messages', { say: word })
    t.equal(received[0]?.headers['anthropic-version'], '2023-06-01')
  }),
  statement('Some models of the generative-content family are served on messages', async (t, world) => {
    const client = await world.client()
    t.equal((await client.call('messages', 'canto-small')).status, 200)
  }),
  statements(
    [
      ['messages', 'sonata-large'],
      ['generate-content', 'sonata-large'],
      ['generate-content', 'ballad-large'],
      ['responses', 'canto-large'],
    ] as const,
    ([protocol, model]) => `A model without a channel on the protocol is 503: ${model} on ${protocol}`,
    async (t, world, [protocol, model]) => {
      const client = await world.client()
      for (const stream of [false, true])
        t.equal((await client.call(protocol, model, { stream })).status, 503)
    },
  ),
  statements(
    CHAT_PROTOCOLS.flatMap((protocol) => ['demo-image', 'demo-video'].map((model) => ({ protocol, model }))),
    ({ protocol, model }) => `A model that only makes media is 503 on chat: ${model} on ${protocol}`,
    async (t, world, { protocol, model }) => {
      const client = await world.client()
      t.equal((await client.call(protocol, model)).status, 503)
    },
  ),
  statement('generateContent answers whole, streamGenerateContent streams', async (t, world) => {
    const client = await world.client()
    const { body } = PLAIN['generate-content']('plain-generate-content', false)
    const base = '/v1beta/models/plain-generate-content'
    const whole = await client.post(`${base}:generateContent`, body)
    checkWhole(t, 'generate-content', whole)
    const events = await client.post(`${base}:streamGenerateContent?alt=sse`, body)
    t.match(events.headers.get('content-type'), /^text\/event-stream/)
    t.match(events.text, /^data: \{/)
    const array = await client.post(`${base}:streamGenerateContent`, body)
    t.match(array.headers.get('content-type'), /^application\/json/)
    t.ok(Array.isArray(JSON.parse(array.text)), 'a JSON array without alt=sse')
  }),
  statement('count_tokens is free, and answers at a balance of zero', async (t, world) => {
    const { path, body } = PLAIN.messages('plain-messages', false)
    for (const credit of ['0', '1000']) {
      const client = await world.client(credit)
      const answer = await client.post(`${path}/count_tokens`, { model: body.model, messages: body.messages })
      t.match(answer, { status: 200, body: { input_tokens: Number } }, credit)
      t.equal((await client.balance()).remaining, credit)
    }
  }),
])
