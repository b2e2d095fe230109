/**
 * Whatever counts an upstream reports, in the form of each protocol and family, native and translated, streamed and
 * whole, with the client leaving in the middle: a call never raises a balance, and a report that contradicts itself
 * bills no more than what was delivered.
 */

import fc from 'fast-check'
import t from 'tap'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { parseCredits } from '../../../schemas/money.ts'
import { PRESETS } from '../../../src/channels/providers/presets.ts'
import { estimateInputTokens, estimateOutputTokens } from '../../../src/core/pricing/text-tokens.ts'
import { MAX_CONTEXT_TOKENS } from '../../../src/core/pricing/usage-bounds.ts'
import { CHAT_PROVIDERS } from '../../support/chat-providers.ts'
import { chunk } from '../../support/event-stream.ts'
import { everyRun } from '../../support/every-run.ts'
import { clientCall, DONE, event, RunningCall } from './forward-support.ts'

const SEED = 20_261_124
const RUNS = 150
const SAID = 'hello hello hello'

const count: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(null, 0, 1, 5, 40, -1, -101, 1.5, 1e9, 1e9 + 1, 1e300, 'many', true),
  fc.nat({ max: 200 }),
)
const some = <T>(fields: { [Name in keyof T]: fc.Arbitrary<T[Name]> }) =>
  fc.record(fields, { requiredKeys: [] })
const counts = (...names: string[]) => some(Object.fromEntries(names.map((name) => [name, count])))

const modalities = fc.array(
  some({ modality: fc.constantFrom('TEXT', 'AUDIO', 'IMAGE', 'VIDEO', 7), tokenCount: count }),
  { maxLength: 3 },
)

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
    server_side_tool_usage_details: counts('web_search_calls', 'SERVER_SIDE_TOOL_CODE_EXECUTION'),
    // An amount of money, which is not read.
    cost: count,
  }),
  messages: some({
    ...Object.fromEntries(
      ['input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'].map(
        (name) => [name, count],
      ),
    ),
    cache_creation: counts('ephemeral_5m_input_tokens', 'ephemeral_1h_input_tokens'),
    server_tool_use: counts('web_search_requests', 'web_fetch_requests'),
    iterations: fc.array(
      some({
        type: fc.constantFrom('compaction', 'message', 7),
        ...{ input_tokens: count, output_tokens: count, cache_read_input_tokens: count },
        cache_creation: counts('ephemeral_5m_input_tokens', 'ephemeral_1h_input_tokens'),
      }),
      { maxLength: 3 },
    ),
  }),
  responses: some({
    ...{ input_tokens: count, output_tokens: count, total_tokens: count },
    input_tokens_details: counts('cached_tokens', 'audio_tokens'),
    output_tokens_details: counts('reasoning_tokens'),
    server_side_tool_usage_details: counts('web_search_calls', 'x_search_calls'),
  }),
  'generate-content': some({
    ...Object.fromEntries(
      ['promptTokenCount', 'candidatesTokenCount', 'cachedContentTokenCount', 'thoughtsTokenCount']
        .concat(['toolUsePromptTokenCount', 'totalTokenCount'])
        .map((name) => [name, count]),
    ),
    promptTokensDetails: modalities,
    cacheTokensDetails: modalities,
    candidatesTokensDetails: modalities,
  }),
} as const satisfies Record<ChatProtocol, fc.Arbitrary<object>>

/** How an upstream answers: its whole answer with headers, and the parts of a stream, behind each of which the client may leave. */
interface Form {
  readonly whole: (usage: object) => object
  readonly headers?: (usage: object) => Readonly<Record<string, string>>
  readonly stream: (first: object, last: object) => readonly (string | Buffer)[]
  /** Of the stream. Default: server-sent events. */
  readonly type?: string
}

const generated = (text: string, more: object) => ({
  candidates: [{ content: { parts: [{ text }] }, ...more }],
})
const USUAL: Readonly<Record<ChatProtocol, Form>> = {
  'chat-completions': {
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
    whole: (usage) => ({ ...generated(SAID, { finishReason: 'STOP' }), usageMetadata: usage }),
    stream: (first, last) => [
      event({ ...generated(SAID, {}), usageMetadata: first }),
      event({ ...generated('', { finishReason: 'STOP' }), usageMetadata: last }),
    ],
  },
}

/** Every family that speaks a protocol, and a channel without one. */
const familiesOf = (protocol: ChatProtocol): readonly (string | undefined)[] => [
  undefined,
  ...CHAT_PROVIDERS.filter((family) => PRESETS[family]!.baseUrls[protocol] !== undefined),
]

const said = { choices: [{ index: 0, delta: { content: SAID } }] }
const finish = { index: 0, delta: {}, finish_reason: 'stop' }
const chat = USUAL['chat-completions']
/** Forms of the chat-completions protocol that are those of one family. */
const OF_FAMILIES: Readonly<Record<string, Form>> = {
  groq: {
    ...chat,
    stream: (first, last) => [
      event({ ...said, x_groq: { id: 'req_1', usage: first } }),
      event({ choices: [finish], x_groq: { id: 'req_1', usage: last } }) + DONE,
    ],
  },
  moonshot: {
    ...chat,
    stream: (first, last) => [
      event({ choices: [{ index: 0, delta: { content: SAID }, usage: first }] }),
      event({ choices: [{ ...finish, usage: last }] }) + DONE,
    ],
  },
  qwen: {
    ...chat,
    stream: (first, last) => [
      event({ ...said, usage: first }),
      event({ choices: [finish], usage: last }),
      event({ choices: [], usage: last }) + DONE,
    ],
  },
}

const asText = (value: unknown): string => String(value ?? '')

/** Bedrock: its own framing and counts in a stream, and counts in headers of a whole answer. */
const BEDROCK: Form = {
  type: 'application/vnd.amazon.eventstream',
  whole: () => ({ ...USUAL.messages.whole({}), usage: undefined }),
  headers: (usage) => {
    const { input_tokens, output_tokens, ...cache } = usage as Record<string, unknown>
    return {
      'x-amzn-bedrock-input-token-count': asText(input_tokens),
      'x-amzn-bedrock-output-token-count': asText(output_tokens),
      'x-amzn-bedrock-cache-read-input-token-count': asText(cache.cache_read_input_tokens),
      'x-amzn-bedrock-cache-write-input-token-count': asText(cache.cache_creation_input_tokens),
    }
  },
  stream: (first, last) => {
    const { input_tokens, output_tokens, cache_read_input_tokens } = last as Record<string, unknown>
    const metrics = {
      inputTokenCount: input_tokens,
      outputTokenCount: output_tokens,
      cacheReadInputTokenCount: cache_read_input_tokens,
    }
    return [
      { type: 'message_start', message: { id: 'msg_1', usage: first } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: SAID } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: first },
      { type: 'message_stop', 'amazon-bedrock-invocationMetrics': metrics },
    ].map(chunk)
  },
}

interface Reader {
  readonly client: ChatProtocol
  readonly upstream: ChatProtocol
  readonly families: readonly (string | undefined)[]
  readonly form: Form
}

const readers: Readonly<Record<string, Reader>> = {
  ...Object.fromEntries(
    (Object.keys(USUAL) as ChatProtocol[]).map((protocol): [string, Reader] => [
      protocol,
      { client: protocol, upstream: protocol, families: familiesOf(protocol), form: USUAL[protocol] },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(OF_FAMILIES).map(([family, form]): [string, Reader] => [
      family,
      {
        ...{ client: 'chat-completions', upstream: 'chat-completions' },
        families: [family, undefined],
        form,
      },
    ]),
  ),
  ...Object.fromEntries(
    (['messages', 'generate-content'] as const).map((upstream): [string, Reader] => [
      `${upstream}, translated`,
      {
        ...{ client: 'chat-completions', upstream },
        families: familiesOf(upstream),
        form: USUAL[upstream],
      },
    ]),
  ),
  'bedrock, in its framing and headers': {
    ...{ client: 'messages', upstream: 'messages', families: ['bedrock'], form: BEDROCK },
  },
}

t.test('every family has its place here', async (t) => {
  const covered = new Set(Object.values(readers).flatMap(({ families }) => families))
  t.same(
    CHAT_PROVIDERS.filter((family) => !covered.has(family)),
    [],
  )
})

/** Each kind of token has a price here; that of the dearest is `DEAREST`. Credits for a million tokens. */
const PRICING = {
  ...{ unit: '1M_tokens', input: '1000000', output: '2000000', cached_input: '100000', reasoning: '3000000' },
  ...{ input_audio: '4000000', output_audio: '5000000', input_image: '2000000', output_image: '7000000' },
  server_tool_call: '1',
}
const DEAREST = 7
/** What a report that contradicts itself is billed with. */
const [INPUT, OUTPUT] = [1, 2]

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
  const { input_tokens: input, output_tokens: output, server_tool_calls: tools } = row
  if (cost > parseCredits(String((input + output) * DEAREST + tools))) fault('more than its tokens')
  if (Math.max(input, output) > MAX_CONTEXT_TOKENS) fault('beyond any call')
  const { usage_suspect: suspect } = JSON.parse(row.detail ?? '{}') as { usage_suspect?: string }
  if (suspect === undefined) return
  if (input > estimateInputTokens(promptBytes)) fault('more than the prompt that was sent')
  if (output > estimateOutputTokens(SAID.length)) fault('more than what was said')
  if (cost > parseCredits(String(input * INPUT + output * OUTPUT + tools))) fault('more than plain prices')
}

for (const [name, { client: protocol, upstream, families, form }] of Object.entries(readers))
  t.test(`usage of ${name}`, async (t) => {
    const usage = USAGES[upstream]
    let suspects = 0
    const run = fc.record({
      first: usage,
      last: usage,
      provider: fc.constantFrom(...families),
      isStream: fc.boolean(),
      /** The parts of the stream that come before the client leaves. */
      seen: fc.nat({ max: 5 }),
    })
    everyRun(t, { numRuns: RUNS, seed: SEED }, [run], ({ first, last, provider, isStream, seen }) => {
      const client = clientCall(protocol, 'hi', isStream)
      const call = new RunningCall({
        client,
        upstream,
        modelFields: { pricing: PRICING },
        channelFields: { only: provider === undefined ? {} : { provider } },
        retries: 0,
      })
      const { whole, stream, headers, type = 'text/event-stream' } = form
      call.attempt.head(200, {
        'content-type': isStream ? type : 'application/json',
        ...(isStream ? {} : headers?.(last)),
      })
      const parts = isStream ? stream(first, last) : [JSON.stringify(whole(last))]
      for (const part of parts.slice(0, seen)) call.attempt.data(part)
      if (seen < parts.length) call.abort()
      else call.attempt.end()
      check(call, JSON.stringify(client.body).length)
      if (call.settlement.detail?.includes('usage_suspect')) suspects++
    })
    t.ok(suspects > RUNS / 10, `${suspects} of ${RUNS} contradicted themselves`)
  })
