/**
 * Two turns of each client on each upstream that proves its reasoning: what the client sends back, the upstream can verify. A
 * step without its proof would be 400. Tools come back under the client's own names.
 */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { post } from '../support.ts'
import { CHAT_PROTOCOLS, type ChatProtocol, configOf, simulated } from './support.ts'

const ASK = 'Look it up. [simulate: tool_calls=2,reasoning=8,reasoning_text]'
const SCHEMA = { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] }
const THINKING_TOKENS = 2048
const MAX_TOKENS = 8192

/** The upstreams, and their models that want their reasoning back. */
const PROVING: Readonly<Partial<Record<ChatProtocol, string>>> = {
  messages: 'sim-sonnet',
  'generate-content': 'sim-gemini-3-sig',
  responses: 'sim-gpt@reasoning_sealed',
}

// biome-ignore lint/suspicious/noExplicitAny: the bodies of four protocols have no type in common, and each test reads only a few fields.
type Json = Record<string, any>

interface Turns {
  readonly path: (model: string) => string
  readonly first: (model: string) => Json
  /** Adds the answer as the client keeps it, and a result for each call. */
  readonly second: (first: Json, answer: Json) => Json
  readonly proofs: (answer: Json) => readonly unknown[]
}

const result = (index: number): string => `result ${index}`

const CLIENTS: Readonly<Record<ChatProtocol, Turns>> = {
  'chat-completions': {
    path: () => '/v1/chat/completions',
    first: (model) => ({
      model,
      messages: [{ role: 'user', content: ASK }],
      tools: [{ type: 'function', function: { name: 'find', parameters: SCHEMA } }],
      reasoning_effort: 'medium',
      max_tokens: MAX_TOKENS,
    }),
    second: (first, { choices: [{ message }] }) => ({
      ...first,
      messages: [
        ...first.messages,
        message,
        ...message.tool_calls.map(({ id }: Json, index: number) => ({
          role: 'tool',
          tool_call_id: id,
          content: result(index),
        })),
      ],
    }),
    proofs: ({ choices: [{ message }] }) => [
      ...(message.thinking_blocks ?? []),
      ...message.tool_calls.flatMap(({ extra_content }: Json) => extra_content ?? []),
    ],
  },
  messages: {
    path: () => '/v1/messages',
    first: (model) => ({
      model,
      max_tokens: MAX_TOKENS,
      thinking: { type: 'enabled', budget_tokens: THINKING_TOKENS },
      messages: [{ role: 'user', content: ASK }],
      tools: [{ name: 'find', input_schema: SCHEMA }],
    }),
    second: (first, { content }) => ({
      ...first,
      messages: [
        ...first.messages,
        { role: 'assistant', content },
        {
          role: 'user',
          content: content
            .filter(({ type }: Json) => type === 'tool_use')
            .map(({ id }: Json, index: number) => ({
              type: 'tool_result',
              tool_use_id: id,
              content: result(index),
            })),
        },
      ],
    }),
    proofs: ({ content }) => content.filter(({ signature, data }: Json) => signature || data),
  },
  'generate-content': {
    path: (model) => `/v1beta/models/${model}:generateContent`,
    first: () => ({
      contents: [{ role: 'user', parts: [{ text: ASK }] }],
      tools: [{ functionDeclarations: [{ name: 'find', parametersJsonSchema: SCHEMA }] }],
      generationConfig: {
        maxOutputTokens: MAX_TOKENS,
        thinkingConfig: { thinkingBudget: THINKING_TOKENS, includeThoughts: true },
      },
    }),
    second: (first, { candidates: [{ content }] }) => ({
      ...first,
      contents: [
        ...first.contents,
        content,
        {
          role: 'user',
          parts: content.parts.flatMap(({ functionCall }: Json) =>
            functionCall === undefined
              ? []
              : [
                  {
                    functionResponse: {
                      id: functionCall.id,
                      name: functionCall.name,
                      response: { output: result(0) },
                    },
                  },
                ],
          ),
        },
      ],
    }),
    proofs: ({ candidates: [{ content }] }) =>
      content.parts.flatMap(({ thoughtSignature }: Json) => thoughtSignature ?? []),
  },
  responses: {
    path: () => '/v1/responses',
    first: (model) => ({
      model,
      input: [{ role: 'user', content: ASK }],
      tools: [{ type: 'function', name: 'find', parameters: SCHEMA }],
      reasoning: { effort: 'medium', summary: 'auto' },
      max_output_tokens: MAX_TOKENS,
      store: false,
      include: ['reasoning.encrypted_content'],
    }),
    second: (first, { output }) => ({
      ...first,
      input: [
        ...first.input,
        ...output,
        ...output
          .filter(({ type }: Json) => type === 'function_call')
          .map(({ call_id }: Json, index: number) => ({
            type: 'function_call_output',
            call_id,
            output: result(index),
          })),
      ],
    }),
    proofs: ({ output }) => output.flatMap(({ encrypted_content }: Json) => encrypted_content ?? []),
  },
}

t.test('two turns of each client on each upstream that proves its reasoning', async (t) => {
  const upstreams = Object.entries(PROVING) as [ChatProtocol, string][]
  const channels = upstreams.map(([protocol, model]) =>
    simulated(protocol, { [`${protocol}-model`]: model }, { serve: [...CHAT_PROTOCOLS] }),
  )
  const models = Object.fromEntries(upstreams.map(([protocol]) => [`${protocol}-model`, {}]))
  const service = await borrowService(t, configOf(models, channels))
  const { key } = await service.newKey('100000000')

  for (const [upstream] of upstreams)
    for (const client of CHAT_PROTOCOLS.filter((protocol) => protocol !== upstream))
      t.test(`${client} on ${upstream}`, async (t) => {
        const { path, first, second, proofs } = CLIENTS[client]
        const model = `${upstream}-model`
        const ask = async (body: Json): Promise<Json> => {
          const response = await post(service, key, path(model), body)
          const text = await response.text()
          t.equal(response.status, 200, text)
          return JSON.parse(text)
        }
        const asked = first(model)
        const answer = await ask(asked)
        t.not(proofs(answer).length, 0, `the client gets the proof: ${JSON.stringify(answer)}`)
        await ask(second(asked, answer))
      })

  t.test('a namespace and a custom tool of responses clients come back as they were', async (t) => {
    for (const [upstream] of upstreams.filter(([protocol]) => protocol !== 'responses')) {
      const tools = [
        {
          type: 'namespace',
          name: 'files',
          description: 'Files',
          tools: [{ type: 'function', name: 'open', parameters: SCHEMA }],
        },
        { type: 'custom', name: 'patch', description: 'A patch', format: { type: 'text' } },
      ]
      const { first, second } = CLIENTS.responses
      const asked = { ...first(`${upstream}-model`), tools }
      const response = await post(service, key, '/v1/responses', asked)
      const answer = (await response.json()) as Json
      t.equal(response.status, 200, JSON.stringify(answer))
      const calls = answer.output.filter(({ type }: Json) => type.endsWith('_call'))
      t.match(calls, [
        { type: 'function_call', namespace: 'files', name: 'open' },
        { type: 'custom_tool_call', name: 'patch', input: String },
      ])
      const patched = { type: 'custom_tool_call_output', call_id: calls[1].call_id, output: 'done' }
      const next = second(asked, answer)
      const again = await post(service, key, '/v1/responses', { ...next, input: [...next.input, patched] })
      t.equal(again.status, 200, await again.text())
    }
  })
})
