/** The reasoning that a request asks for, in every form and protocol, and the bytes that the interface's formula counts. */
import t from 'tap'
import { callOf, readByContract, readChatCall } from '../../../../src/protocols/chat-completions/dialect.ts'
import type { ChatCall, Dialect } from '../../../../src/protocols/dialect.ts'
import { generateContentDialect } from '../../../../src/protocols/generate-content/dialect.ts'
import { messagesDialect } from '../../../../src/protocols/messages/dialect.ts'
import { responsesDialect } from '../../../../src/protocols/responses/dialect.ts'

type Read = (more: object) => ChatCall

const bodyOf = (usual: object, more: object) => Buffer.from(JSON.stringify({ ...usual, ...more }))
const reader =
  (dialect: Dialect, path: string, usual: object): Read =>
  (more) =>
    dialect.read({ path, query: '', body: bodyOf(usual, more) })

const conversation = [{ role: 'user', content: 'hi' }]
const chat = { model: 'm', messages: conversation }
const READERS: Readonly<Record<string, Read>> = {
  chat: (more) => readChatCall(bodyOf(chat, more)),
  'chat by its contract': (more) => {
    const body = bodyOf(chat, more)
    return callOf(body, readByContract(body))
  },
  messages: reader(messagesDialect, '/v1/messages', { model: 'm', max_tokens: 9, messages: conversation }),
  responses: reader(responsesDialect, '/v1/responses', { model: 'm', input: conversation }),
  contents: reader(generateContentDialect, '/v1beta/models/m:generateContent', {
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
    READERS.contents!({ systemInstruction: system, tools: [{ functionDeclarations: [] }] }).conversationBytes,
    contents + bytesOf(system),
  )
})
