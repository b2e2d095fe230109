/** What the pre-charge counts as prompt beside the conversation, in each protocol, to the byte. */
import t from 'tap'
import { readByContract, readChatCall } from '../../../../src/protocols/chat-completions/dialect.ts'
import type { Dialect } from '../../../../src/protocols/dialect.ts'
import { generateContentDialect } from '../../../../src/protocols/generate-content/dialect.ts'
import { messagesDialect } from '../../../../src/protocols/messages/dialect.ts'
import { responsesDialect } from '../../../../src/protocols/responses/dialect.ts'

const SCHEMA = { type: 'object', properties: { city: { type: 'string', description: 'straße' } } }
const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

const chatBody = (more: object) =>
  Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...more }))

const reader =
  (dialect: Dialect, path: string, usual: object) =>
  (more: object): number =>
    dialect.read({ path, query: '', body: Buffer.from(JSON.stringify({ ...usual, ...more })) }).promptBytes

const conversation = [{ role: 'user', content: 'hi' }]
const READERS = {
  'chat-completions': (more: object) => readChatCall(chatBody(more)).promptBytes,
  'chat-completions by its contract': (more: object) => readByContract(chatBody(more)).promptBytes,
  messages: reader(messagesDialect, '/v1/messages', { model: 'm', max_tokens: 9, messages: conversation }),
  responses: reader(responsesDialect, '/v1/responses', { model: 'm', input: conversation }),
  'generate-content': reader(generateContentDialect, '/v1beta/models/m:generateContent', {
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
