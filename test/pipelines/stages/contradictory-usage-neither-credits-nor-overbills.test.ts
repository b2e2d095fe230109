/**
 * Whatever counts an upstream reports, in each protocol and family, streamed and whole, with the client leaving in the
 * middle: a call never raises a balance, and a report that contradicts itself bills no more than what was delivered.
 */
import fc from 'fast-check'
import t from 'tap'
import type { ChatProtocol, Provider } from '../../../schemas/config/catalog.ts'
import { parseCredits } from '../../../schemas/money.ts'
import { estimateInputTokens, estimateOutputTokens } from '../../../src/core/pricing/text-tokens.ts'
import { MAX_CONTEXT_TOKENS } from '../../../src/core/pricing/usage-bounds.ts'
import { type ClientCall, DONE, event, MODEL, RunningCall } from './forward-support.ts'

const SEED = 20_261_124
const RUNS = 250
const SAID = 'hello hello hello'
const messages = [{ role: 'user', content: 'hi' }]

const count: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(null, 0, 1, 5, 40, -1, -101, 1.5, 1e9, 1e9 + 1, 1e300, 'many', true),
  fc.nat({ max: 200 }),
)
const some = <T>(fields: { [Name in keyof T]: fc.Arbitrary<T[Name]> }) =>
  fc.record(fields, { requiredKeys: [] })
const counts = (...names: string[]) => some(Object.fromEntries(names.map((name) => [name, count])))

const USAGES = {
  'chat-completions': some({
    ...Object.fromEntries(
      ['prompt_tokens', 'completion_tokens', 'total_tokens', 'cached_tokens', 'prompt_cache_hit_tokens']
        .concat(['cache_read_input_tokens', 'cache_creation_input_tokens', 'num_sources_used'])
        .map((name) => [name, count]),
    ),
    prompt_tokens_details: counts('cached_tokens', 'cache_write_tokens', 'audio_tokens', 'image_tokens'),
    completion_tokens_details: counts('reasoning_tokens', 'audio_tokens', 'image_tokens'),
    server_tool_use: counts('web_search_requests'),
  }),
  messages: some({
    ...Object.fromEntries(
      ['input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'].map(
        (name) => [name, count],
      ),
    ),
    cache_creation: counts('ephemeral_5m_input_tokens', 'ephemeral_1h_input_tokens'),
    server_tool_use: counts('web_search_requests', 'web_fetch_requests'),
  }),
  responses: some({
    ...{ input_tokens: count, output_tokens: count, total_tokens: count },
    input_tokens_details: counts('cached_tokens', 'audio_tokens'),
    output_tokens_details: counts('reasoning_tokens'),
  }),
  'generate-content': counts(
    ...['promptTokenCount', 'candidatesTokenCount', 'cachedContentTokenCount', 'thoughtsTokenCount'],
    ...['toolUsePromptTokenCount', 'totalTokenCount'],
  ),
} as const satisfies Record<ChatProtocol, fc.Arbitrary<object>>

interface Way {
  readonly path: string
  readonly body: object
  readonly whole: (usage: object) => object
  /** The parts of a stream: the client may leave behind each. */
  readonly stream: (first: object, last: object) => readonly string[]
}

const generated = (text: string, more: object) => ({
  candidates: [{ content: { parts: [{ text }] }, ...more }],
})
const WAYS: Readonly<Record<ChatProtocol, Way>> = {
  'chat-completions': {
    path: '/v1/chat/completions',
    body: { messages },
    whole: (usage) => ({
      choices: [{ index: 0, message: { content: SAID }, finish_reason: 'stop' }],
      usage,
    }),
    stream: (first, last) => [
      event({ choices: [{ index: 0, delta: { content: SAID } }], usage: first }),
      event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
      event({ choices: [], usage: last }) + DONE,
    ],
  },
  messages: {
    path: '/v1/messages',
    body: { messages, max_tokens: 100 },
    whole: (usage) => ({
      ...{ type: 'message', role: 'assistant', content: [{ type: 'text', text: SAID }] },
      ...{ stop_reason: 'end_turn', usage },
    }),
    stream: (first, last) => [
      event({ type: 'message_start', message: { id: 'msg_1', usage: first } }),
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: SAID } }),
      event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: last }),
      event({ type: 'message_stop' }),
    ],
  },
  responses: {
    path: '/v1/responses',
    body: { input: messages },
    whole: (usage) => ({
      ...{ object: 'response', status: 'completed', usage },
      output: [{ type: 'message', content: [{ type: 'output_text', text: SAID }] }],
    }),
    stream: (first, last) => [
      event({ type: 'response.created', response: { usage: first } }),
      event({ type: 'response.output_text.delta', delta: SAID }),
      event({
        type: 'response.completed',
        response: { object: 'response', status: 'completed', output: [], usage: last },
      }),
    ],
  },
  'generate-content': {
    path: `/v1beta/models/${MODEL}:streamGenerateContent`,
    body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
    whole: (usage) => ({ ...generated(SAID, { finishReason: 'STOP' }), usageMetadata: usage }),
    stream: (first, last) => [
      event({ ...generated(SAID, {}), usageMetadata: first }),
      event({ ...generated('', { finishReason: 'STOP' }), usageMetadata: last }),
    ],
  },
}

const FAMILIES: Readonly<Record<ChatProtocol, readonly (Provider | undefined)[]>> = {
  'chat-completions': [undefined, 'deepseek', 'groq', 'xai', 'mistral', 'qwen', 'openrouter', 'zhipu', 'ark'],
  messages: [undefined, 'anthropic', 'bedrock'],
  responses: [undefined, 'openai', 'azure'],
  'generate-content': [undefined, 'gemini', 'vertex'],
}

/** The dearest token of a prompt, written to a cache for an hour, and each of the output, costs 2 credits. */
const DEAREST = 2

/** Throws where the settlement bills more than it may, or gives credits back. */
function check(call: RunningCall, promptBytes: number): void {
  const { settlement: row, view } = call
  const cost = BigInt(row.cost)
  const fault = (what: string): never => {
    throw new Error(`${what}: ${JSON.stringify(row)}`)
  }
  if (cost < 0n || view.unbooked !== cost) fault('the balance is wrong')
  const parts = [row.cached_tokens, row.cache_write_tokens, row.reasoning_tokens, row.server_tool_calls]
  if (
    [row.input_tokens, row.output_tokens, ...parts].some((each) => !(Number.isSafeInteger(each) && each >= 0))
  )
    fault('a count is none')
  if (row.cached_tokens + row.cache_write_tokens > row.input_tokens) fault('more than the prompt')
  if (row.reasoning_tokens > row.output_tokens) fault('more than the output')
  if (cost > parseCredits(String((row.input_tokens + row.output_tokens) * DEAREST)))
    fault('more than its tokens')
  if (Math.max(row.input_tokens, row.output_tokens) > MAX_CONTEXT_TOKENS) fault('beyond any call')
  const { usage_suspect: suspect } = JSON.parse(row.detail ?? '{}') as { usage_suspect?: string }
  if (suspect === undefined) return
  if (row.input_tokens > estimateInputTokens(promptBytes)) fault('more than the prompt that was sent')
  if (row.output_tokens > estimateOutputTokens(SAID.length)) fault('more than what was said')
}

for (const protocol of Object.keys(WAYS) as ChatProtocol[])
  t.test(`usage of ${protocol}`, async (t) => {
    const { path, body, whole, stream } = WAYS[protocol]
    const usage = USAGES[protocol]
    let suspects = 0
    const run = fc.record({
      first: usage,
      last: usage,
      provider: fc.constantFrom(...FAMILIES[protocol]),
      isStream: fc.boolean(),
      /** The parts of the stream that come before the client leaves. */
      seen: fc.nat({ max: 5 }),
    })
    fc.assert(
      fc.property(run, ({ first, last, provider, isStream, seen }) => {
        const client: ClientCall = {
          protocol,
          path: isStream ? path : path.replace('streamGenerateContent', 'generateContent'),
          query: isStream ? 'alt=sse' : '',
          body: { model: MODEL, stream: isStream, ...body },
        }
        const call = new RunningCall({
          client,
          upstream: protocol,
          channelFields: { only: provider === undefined ? {} : { provider } },
          retries: 0,
        })
        call.attempt.head(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
        const parts = isStream ? stream(first, last) : [JSON.stringify(whole(last))]
        for (const part of parts.slice(0, seen)) call.attempt.data(part)
        if (seen < parts.length) call.abort()
        else call.attempt.end()
        check(call, JSON.stringify(client.body).length)
        if (call.settlement.detail?.includes('usage_suspect')) suspects++
      }),
      { numRuns: RUNS, seed: SEED },
    )
    t.ok(suspects > RUNS / 10, `${suspects} of ${RUNS} contradicted themselves`)
  })
