/** What of a request is counted before it is forwarded. */
import t from 'tap'
import { z } from 'zod'
import type { ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { MAX_ODD_NUMBERS, parseExactJson } from '../../../../src/core/json/exact.ts'
import {
  MAX_CHOSEN_NAMES,
  MAX_FIELDS,
  MAX_JSON_VALUES,
  MAX_OTHER_NAMES,
} from '../../../../src/core/json/names.ts'
import { readAgentRequest } from '../../../../src/protocols/chat-completions/agent-body.ts'
import { readByContract, readChatCall, toCall } from '../../../../src/protocols/chat-completions/dialect.ts'
import type { ChatCall, Dialect } from '../../../../src/protocols/dialect.ts'
import { generateContentDialect } from '../../../../src/protocols/generate-content/dialect.ts'
import { messagesDialect } from '../../../../src/protocols/messages/dialect.ts'
import { readClientJson } from '../../../../src/protocols/request/client-json.ts'
import { MAX_MESSAGES, MAX_PARTS, MAX_TOOLS } from '../../../../src/protocols/request/counts.ts'
import { responsesDialect } from '../../../../src/protocols/responses/dialect.ts'
import { chatWith, PLAIN_REQUESTS, readBody } from './plain-requests.ts'

t.test('whole prompt is counted', async (t) => {
  // What the pre-charge counts as prompt beside the conversation, in each protocol, to the byte.
  const SCHEMA = { type: 'object', properties: { city: { type: 'string', description: 'straße' } } }
  const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

  const chatBody = (more: object) =>
    Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...more }))

  const reader =
    (dialect: Dialect, usual: object) =>
    (more: object): number =>
      dialect.read({ model: 'm', query: '', body: Buffer.from(JSON.stringify({ ...usual, ...more })) })
        .promptBytes

  const conversation = [{ role: 'user', content: 'hi' }]
  const READERS = {
    'chat-completions': (more: object) => readChatCall(chatBody(more)).promptBytes,
    'chat-completions by its contract': (more: object) => readByContract(chatBody(more)).promptBytes,
    messages: reader(messagesDialect, { model: 'm', max_tokens: 9, messages: conversation }),
    responses: reader(responsesDialect, { model: 'm', input: conversation }),
    'generate-content': reader(generateContentDialect, {
      contents: [{ parts: [{ text: 'hi' }] }],
    }),
  }

  const chatTools = [{ type: 'function', function: { name: 'f', parameters: SCHEMA } }]
  const chatFormat = { type: 'json_schema', json_schema: { name: 's', schema: SCHEMA } }
  const messagesTools = [{ name: 'f', description: 'd', input_schema: SCHEMA }]
  const responsesTools = [{ type: 'function', name: 'f', parameters: SCHEMA }]
  const textFormat = { format: { type: 'json_schema', name: 's', schema: SCHEMA } }
  const contentTools = [{ functionDeclarations: [{ name: 'f', parameters: SCHEMA }] }]
  const kindAlone = { type: 'json_object' }

  type Case = readonly [more: object, counted: number]

  const CHAT: readonly Case[] = [
    [{ tools: chatTools }, bytesOf(chatTools)],
    [{ functions: [{ name: 'f', parameters: SCHEMA }] }, bytesOf([{ name: 'f', parameters: SCHEMA }])],
    [{ response_format: chatFormat }, bytesOf(chatFormat)],
    [{ response_format: { ...kindAlone, schema: SCHEMA } }, bytesOf({ ...kindAlone, schema: SCHEMA })],
    [{ system: 'be brief' }, bytesOf('be brief')],
    [{ documents: [{ text: 'long' }], guided_json: SCHEMA }, bytesOf([{ text: 'long' }]) + bytesOf(SCHEMA)],
    [{ tools: chatTools, response_format: chatFormat }, bytesOf(chatTools) + bytesOf(chatFormat)],
    [{ tools: null, functions: null, response_format: null, system: null }, 0],
    [{ response_format: kindAlone, user: 'me', stop: ['a'], tool_choice: 'auto', n: 2 }, 0],
  ]

  const CASES: Readonly<Record<keyof typeof READERS, readonly Case[]>> = {
    'chat-completions': CHAT,
    'chat-completions by its contract': CHAT,
    messages: [
      [{ tools: messagesTools }, bytesOf(messagesTools)],
      [{ tools: messagesTools, system: 'be' }, bytesOf(messagesTools) + bytesOf('be')],
      [{ output_config: textFormat }, bytesOf(textFormat)],
      [{ output_format: textFormat.format }, bytesOf(textFormat.format)],
      [{ output_config: { effort: 'low' }, metadata: { user_id: 'x' }, tools: null }, 0],
    ],
    responses: [
      [{ tools: responsesTools }, bytesOf(responsesTools)],
      [{ tools: responsesTools, instructions: 'be' }, bytesOf(responsesTools) + bytesOf('be')],
      [{ text: textFormat }, bytesOf(textFormat)],
      [{ text: { format: { type: 'text' }, verbosity: 'low' }, tools: null }, 0],
    ],
    'generate-content': [
      [{ tools: contentTools }, bytesOf(contentTools)],
      [{ generationConfig: { responseSchema: SCHEMA } }, bytesOf(SCHEMA)],
      [{ generation_config: { response_json_schema: SCHEMA, temperature: 1 } }, bytesOf(SCHEMA)],
      [{ tools: [], generationConfig: { responseSchema: null, maxOutputTokens: 5 } }, 2],
      [{ generationConfig: null, tools: null }, 0],
    ],
  }

  for (const [protocol, read] of Object.entries(READERS))
    t.test(`${protocol}: fields beside the conversation count as they were written`, async (t) => {
      const without = read({})
      for (const [more, counted] of CASES[protocol as keyof typeof READERS])
        t.equal(read(more) - without, counted, JSON.stringify(more))
    })
})

t.test('thinking counts next to the limit', async (t) => {
  // The reasoning that a request asks for, in every form and protocol, and the bytes that the interface's formula counts.
  type Read = (more: object) => ChatCall

  const bodyOf = (usual: object, more: object) => Buffer.from(JSON.stringify({ ...usual, ...more }))
  const reader =
    (dialect: Dialect, usual: object): Read =>
    (more) =>
      dialect.read({ model: 'm', query: '', body: bodyOf(usual, more) })

  const conversation = [{ role: 'user', content: 'hi' }]
  const chat = { model: 'm', messages: conversation }
  const READERS: Readonly<Record<string, Read>> = {
    chat: (more) => readChatCall(bodyOf(chat, more)),
    'chat by its contract': (more) => {
      const body = bodyOf(chat, more)
      return toCall(body, readByContract(body))
    },
    messages: reader(messagesDialect, { model: 'm', max_tokens: 9, messages: conversation }),
    responses: reader(responsesDialect, { model: 'm', input: conversation }),
    contents: reader(generateContentDialect, {
      contents: [{ parts: [{ text: 'hi' }] }],
    }),
  }

  type Case = readonly [more: object, tokens: number | undefined]

  const COMMON: readonly Case[] = [
    [{}, undefined],
    [{ thinking: { type: 'enabled', budget_tokens: 5000 } }, 5000],
    [{ thinking: { type: 'enabled' } }, 8192],
    [{ thinking: { type: 'adaptive' } }, 32_768],
    [{ thinking: { type: 'disabled', budget_tokens: 5000 } }, undefined],
  ]
  const CHAT: readonly Case[] = [
    ...COMMON,
    [{ reasoning: { max_tokens: 700 } }, 700],
    [{ reasoning: { effort: 'high' } }, 24_576],
    [{ reasoning: { enabled: false, effort: 'high' } }, undefined],
    [{ reasoning: { enabled: true } }, 8192],
    [{ reasoning_effort: 'low' }, 4096],
    [{ reasoning_effort: 'none' }, undefined],
    [{ reasoning_effort: 'ultra' }, 32_768],
    [{ reasoning_effort: null, thinking: null }, undefined],
    [{ enable_thinking: true }, 8192],
    [{ enable_thinking: true, thinking_budget: 38_912 }, 38_912],
    [{ thinking_budget: 100.5 }, 101],
    [{ thinking_budget: -1 }, 32_768],
    [{ thinking_budget: 1e300 }, 1_000_000_000],
    [{ reasoning_effort: 'low', thinking_budget: 9000 }, 9000],
    [{ chat_template_kwargs: { enable_thinking: true, thinking_budget: 12_000 } }, 12_000],
    [{ google: { thinking_config: { thinking_budget: 20_000 } } }, 20_000],
    [{ google: { thinking_config: { thinking_level: 'high' } } }, 24_576],
    [{ user: 'high', seed: 5, metadata: { thinking_budget: 5 } }, undefined],
  ]
  const CASES: Readonly<Record<string, readonly Case[]>> = {
    chat: CHAT,
    'chat by its contract': CHAT,
    messages: [
      ...COMMON,
      [{ output_config: { effort: 'max' } }, 32_768],
      [
        {
          messages: [
            { role: 'system', content: 'be', output_config: { effort: 'high' } },
            { role: 'user', content: 'hi' },
          ],
        },
        24_576,
      ],
    ],
    responses: [
      ...COMMON,
      [{ reasoning: { effort: 'medium', summary: 'auto' } }, 8192],
      [{ reasoning: { effort: 'none' } }, undefined],
      [{ thinking_budget: 4000 }, 4000],
    ],
    contents: [
      [{}, undefined],
      [{ generationConfig: { thinkingConfig: { thinkingBudget: 2000, includeThoughts: true } } }, 2000],
      [{ generation_config: { thinking_config: { thinking_budget: -1 } } }, 32_768],
      [{ generationConfig: { thinkingConfig: { thinkingLevel: 'LOW' } } }, 4096],
      [{ generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }, undefined],
      [{ generationConfig: null }, undefined],
    ],
  }

  for (const [name, read] of Object.entries(READERS))
    t.test(`${name}: the reasoning that a request asks for`, async (t) => {
      for (const [more, tokens] of CASES[name]!)
        t.equal(read(more).thinkingTokens, tokens, JSON.stringify(more))
    })

  t.test('the formula of the interface counts the conversation and its instructions alone', async (t) => {
    const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value))
    const tools = [{ type: 'function', function: { name: 'f' } }]
    for (const name of ['chat', 'chat by its contract'])
      t.equal(READERS[name]!({ tools }).conversationBytes, bytesOf(conversation), name)
    const named = [{ name: 'f', input_schema: {} }]
    t.equal(READERS.messages!({ system: 'be', tools: named }).conversationBytes, bytesOf(conversation) + 4)
    t.equal(READERS.messages!({ system: null }).conversationBytes, bytesOf(conversation), 'null is absent')
    const functions = [{ type: 'function', name: 'f' }]
    t.equal(
      READERS.responses!({ instructions: 'be', tools: functions }).conversationBytes,
      bytesOf(conversation) + 4,
    )
    t.equal(READERS.responses!({ instructions: null }).conversationBytes, bytesOf(conversation))
    const contents = bytesOf([{ parts: [{ text: 'hi' }] }])
    const system = { parts: [{ text: 'be' }] }
    t.equal(
      READERS.contents!({ systemInstruction: system, tools: [{ functionDeclarations: [] }] })
        .conversationBytes,
      contents + bytesOf(system),
    )
  })
})

t.test('parts given by url are counted', async (t) => {
  // Images, files and audio given by URL, in each protocol that takes them: those inline count by their bytes alone.
  const URL = 'https://example.com/x'
  const INLINE = 'data:image/png;base64,AAAA'
  const NONE = { image: 0, file: 0, audio: 0, urls: [] }

  const bodyOf = (more: object) => Buffer.from(JSON.stringify({ model: 'm', max_tokens: 5, ...more }))
  const user = (content: unknown) => [{ role: 'user', content }]

  const READERS = {
    chat: (parts: unknown) => readChatCall(bodyOf({ messages: user(parts) })).links,
    messages: (parts: unknown) =>
      messagesDialect.read({ query: '', body: bodyOf({ messages: user(parts) }) }).links,
    responses: (parts: unknown) =>
      responsesDialect.read({ query: '', body: bodyOf({ input: user(parts) }) }).links,
  }

  const source = (url: string) => ({ type: 'image', source: { type: 'url', url } })
  const base64 = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
  const found = { type: 'web_search_result', url: URL, title: 't', encrypted_content: 'x' }
  const result = (content: unknown) => ({ type: 'tool_result', tool_use_id: 't', content })

  const CASES: Readonly<
    Record<keyof typeof READERS, ReadonlyArray<readonly [parts: unknown, links: object]>>
  > = {
    chat: [
      ['plain', NONE],
      [[{ type: 'text', text: `"image_url":"${URL}"` }], NONE],
      [[{ type: 'image_url', image_url: { url: INLINE } }], NONE],
      [
        [
          { type: 'image_url', image_url: { url: URL } },
          { type: 'image_url', image_url: URL },
        ],
        { image: 2 },
      ],
      [[{ type: 'file', file: { filename: 'f', file_data: URL } }], { file: 1 }],
      [[{ type: 'file', file: { filename: 'f', file_data: 'AAAA' } }], NONE],
      [[{ type: 'audio_url', audio_url: { url: URL } }], { audio: 1, image: 0, urls: [URL] }],
      [[{ type: 'document_url', document_url: URL }], { file: 1 }],
    ],
    messages: [
      [[{ type: 'text', text: URL }, base64], NONE],
      [[{ type: 'document', source: { type: 'text', media_type: 'text/plain', data: URL } }], NONE],
      [[source(URL), { type: 'document', source: { type: 'url', url: URL } }], { image: 1, file: 1 }],
      [[result([source(URL)])], { image: 1 }],
      [
        [source(URL), { type: 'web_search_tool_result', tool_use_id: 's', content: [found] }],
        { image: 1, file: 0 },
      ],
      [[result([base64]), result(URL), { type: 'tool_use', id: 't', name: 'f', input: { url: URL } }], NONE],
    ],
    responses: [
      [
        [
          { type: 'input_text', text: URL },
          { type: 'input_image', image_url: INLINE },
        ],
        NONE,
      ],
      [
        [
          { type: 'input_image', image_url: URL },
          { type: 'input_file', file_url: URL },
        ],
        { image: 1, file: 1 },
      ],
    ],
  }

  for (const [protocol, read] of Object.entries(READERS))
    t.test(protocol, async (t) => {
      for (const [parts, links] of CASES[protocol as keyof typeof READERS])
        t.match(read(parts), links, JSON.stringify(parts))
    })

  t.test('images of earlier answers, and the masks of tools', async (t) => {
    const image = (url: string) => ({ type: 'image_url', image_url: { url } })
    const chat = (messages: readonly object[], tools: readonly object[] = []) =>
      readChatCall(bodyOf({ messages, tools, stream: true })).links
    const drawn = (url: string) => [...user('x'), { role: 'assistant', content: '', images: [image(url)] }]
    t.match(chat(drawn(URL)), { image: 1, urls: [URL] })
    t.match(chat(drawn(INLINE)), NONE)
    const tools = (image_url: string) => [{ type: 'image_generation', input_image_mask: { image_url } }]
    t.match(chat(user('x'), tools(URL)), { image: 1, urls: [URL] })
    const masked = (url: string) => bodyOf({ input: user('x'), tools: tools(url) })
    const responses = (body: Buffer) => responsesDialect.read({ query: '', body }).links
    t.match(responses(masked(URL)), { image: 1, urls: [URL] })
    t.match(responses(masked(INLINE)), NONE)
  })
})

t.test('requests hold so many items', async (t) => {
  // A request holds so many messages, parts, tools and values: one with more is refused before it is checked item by item.
  interface Form {
    readonly list: string
    /** A message with so many parts. */
    readonly message: (parts: number) => object
    readonly tools: (count: number) => readonly object[]
  }

  const many = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item)
  const functionTool = { type: 'function', function: { name: 'f' } }

  const FORMS: Readonly<Record<ChatProtocol, Form>> = {
    'chat-completions': {
      list: 'messages',
      message: (parts) => ({ role: 'user', content: many(parts, { type: 'text', text: 'a' }) }),
      tools: (count) => many(count, functionTool),
    },
    messages: {
      list: 'messages',
      message: (parts) => ({ role: 'user', content: many(parts, { type: 'text', text: 'a' }) }),
      tools: (count) => many(count, { name: 'f', input_schema: { type: 'object' } }),
    },
    'generate-content': {
      list: 'contents',
      message: (parts) => ({ role: 'user', parts: many(parts, { text: 'a' }) }),
      tools: (count) => [{ functionDeclarations: many(count, { name: 'f' }) }],
    },
    responses: {
      list: 'input',
      message: (parts) => ({ role: 'user', content: many(parts, { type: 'input_text', text: 'a' }) }),
      tools: (count) => many(count, { type: 'function', name: 'f', parameters: {} }),
    },
  }

  const tooMany = (field: string, max: number, what: string) => ({
    code: 'invalid_request',
    message: new RegExp(`'${field}' is not valid: it holds more than ${max} ${what}`),
  })

  for (const [protocol, { list, message, tools }] of Object.entries(FORMS) as [ChatProtocol, Form][])
    t.test(protocol, async (t) => {
      const read = (more: object) => () => chatWith(protocol, more)
      t.doesNotThrow(read({ [list]: many(MAX_MESSAGES, message(1)) }))
      t.throws(read({ [list]: many(MAX_MESSAGES + 1, message(0)) }), tooMany(list, MAX_MESSAGES, 'messages'))
      t.doesNotThrow(read({ [list]: many(2, message(MAX_PARTS / 2)) }))
      t.throws(read({ [list]: many(2, message(MAX_PARTS / 2 + 1)) }), tooMany(list, MAX_PARTS, 'parts'))
      t.doesNotThrow(read({ tools: tools(MAX_TOOLS) }))
      t.throws(read({ tools: tools(MAX_TOOLS + 1) }), tooMany('tools', MAX_TOOLS, 'tools'))
      const usual = JSON.stringify(PLAIN_REQUESTS[protocol]).slice(0, -1)
      const values = (count: number) => () => readBody(protocol, `${usual},"x":[${'0,'.repeat(count)}0]}`)
      t.doesNotThrow(values(MAX_JSON_VALUES - 50))
      t.throws(values(MAX_JSON_VALUES), { message: `more than ${MAX_JSON_VALUES} values; send fewer` })
      t.throws(() => readBody(protocol, `{"${list}":[{"content":[${'{},'.repeat(4_000_000)}{}]}]}`), {
        message: `more than ${MAX_JSON_VALUES} values`,
      })
    })

  /** A list of objects with so many names in all. */
  const objectsWith = (count: number, name: string, inOne = MAX_FIELDS): object[] =>
    Array.from({ length: Math.ceil(count / inOne) }, (_, at) =>
      Object.fromEntries(
        Array.from({ length: Math.min(inOne, count - at * inOne) }, (_, index) => [name + index, 1]),
      ),
    )

  t.test('names that are not in ASCII', async (t) => {
    // Names inside of a message are read.
    const named = (count: number) =>
      chatWith('chat-completions', {
        messages: objectsWith(count, 'ä', 1_000).map((names) => ({ ...names, role: 'user', content: '' })),
      })
    t.doesNotThrow(() => named(MAX_OTHER_NAMES))
    t.throws(() => named(MAX_OTHER_NAMES + 1), {
      message: `more than ${MAX_OTHER_NAMES} names that are not in ASCII`,
    })
  })

  t.test('fields of one object, and names that the client chooses', async (t) => {
    const fields = (count: number) =>
      chatWith('chat-completions', {
        x: Object.fromEntries(many(count, 'n').map((name, at) => [name + at, 1])),
      })
    t.doesNotThrow(() => fields(MAX_FIELDS))
    t.throws(() => fields(MAX_FIELDS + 1), { message: `more than ${MAX_FIELDS} fields; send fewer` })
    const chosen = (count: number) => chatWith('chat-completions', { x: objectsWith(count, 'n') })
    t.doesNotThrow(() => chosen(MAX_CHOSEN_NAMES))
    t.throws(() => chosen(MAX_CHOSEN_NAMES + 1), { message: `more than ${MAX_CHOSEN_NAMES} names` })
  })

  t.test('numbers that have to be kept as they are written', async (t) => {
    const numbers = (count: number) => () =>
      parseExactJson(`[${Array.from({ length: count }, () => '12345678901234567890').join(',')}]`)
    t.doesNotThrow(numbers(MAX_ODD_NUMBERS))
    t.throws(numbers(MAX_ODD_NUMBERS + 1), { message: `more than ${MAX_ODD_NUMBERS} numbers` })
  })

  for (const protocol of Object.keys(FORMS) as ChatProtocol[])
    t.test(`${protocol}: the first wrong item of a long list is named by its place`, async (t) => {
      const { list, message } = FORMS[protocol]
      const items = many(1_000, message(1))
      items[777] = { role: 5, parts: 5, content: 5 }
      items[900] = { role: 6 }
      t.throws(() => readBody(protocol, JSON.stringify({ ...PLAIN_REQUESTS[protocol], [list]: items })), {
        message: new RegExp(`${list}\\[777\\]`),
      })
    })

  for (const protocol of Object.keys(FORMS) as ChatProtocol[])
    t.test(`${protocol}: so is the first wrong part of a long message`, async (t) => {
      const { list, message } = FORMS[protocol]
      const long = message(1_000) as Record<string, unknown>
      const name = 'parts' in long ? 'parts' : 'content'
      const parts = [...(long[name] as unknown[])]
      for (const at of [777, 900]) parts[at] = { type: 5, text: 5 }
      const items = [...many(150, message(1)), { ...long, [name]: parts }, ...many(150, message(1))]
      t.throws(() => readBody(protocol, JSON.stringify({ ...PLAIN_REQUESTS[protocol], [list]: items })), {
        message: new RegExp(`${list}\\[150\\]\\.${name}\\[777\\]`),
      })
    })

  t.test('agents, and functions in place of tools', async (t) => {
    const { message } = FORMS['chat-completions']
    const body = (messages: readonly object[]) => Buffer.from(JSON.stringify({ messages }))
    t.throws(() => readAgentRequest(body(many(MAX_MESSAGES + 1, message(0)))), { message: /10000 messages/ })
    const functions = many(MAX_TOOLS + 1, { name: 'f' })
    t.throws(() => chatWith('chat-completions', { functions }), tooMany('functions', MAX_TOOLS, 'tools'))
  })

  t.test('no item is checked more than twice, whatever other lists there are', async (t) => {
    let checks = 0
    const items = z.array(
      z.number().refine(() => {
        checks++
        return true
      }),
    )
    const lists = { a: many(2_000, 1), b: many(2_000, 1), c: many(50, 1) }
    t.same(readClientJson(z.object({ a: items, b: items, c: items }), lists), lists)
    t.ok(checks <= 2 * 4_050, `${checks} checks`)
  })
})
