/** A request holds so many messages, parts, tools and values: one with more is refused before it is checked item by item. */
import t from 'tap'
import { z } from 'zod'
import type { ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { MAX_ODD_NUMBERS, parseExactJson } from '../../../../src/core/json/exact.ts'
import { MAX_CHOSEN_NAMES, MAX_FIELDS, MAX_OTHER_NAMES } from '../../../../src/core/json/names.ts'
import { readAgentRequest } from '../../../../src/protocols/chat-completions/agent-body.ts'
import { MAX_JSON_VALUES, readClientJson } from '../../../../src/protocols/request/client-json.ts'
import { MAX_MESSAGES, MAX_PARTS, MAX_TOOLS } from '../../../../src/protocols/request/counts.ts'
import { chatWith, PLAIN_REQUESTS, readBody } from './plain-requests.ts'

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
