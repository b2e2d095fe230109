/** What a chat call used and costs: by its usage, without one, and when the client leaves. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { LATE_USAGE_MAX_BYTES, LateUsage } from '../../../pipelines/chat/forward/after-answer.ts'
import { CallRecord, type Ending } from '../../../pipelines/chat/forward/call-record.ts'
import type { AdmittedCall } from '../../../pipelines/chat/precharge.ts'
import { planTransition } from '../../../pipelines/tasks/transition.ts'
import { type ChatProtocol, modelEntry } from '../../../schemas/config/catalog.ts'
import { emptyResult } from '../../../schemas/media/job.ts'
import { parseCredits, printCredits } from '../../../schemas/money.ts'
import { PRESETS } from '../../../src/channels/providers/presets.ts'
import { toKeptPrice } from '../../../src/core/pricing/kept-price.ts'
import { estimateInputTokens, estimateOutputTokens } from '../../../src/core/pricing/text-tokens.ts'
import { MAX_CONTEXT_TOKENS } from '../../../src/core/pricing/usage-bounds.ts'
import { REFUSAL_KEPT_MS, UsageOptionRefusals } from '../../../src/core/routing/usage-option-refusals.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { ChatCompletionsMeter } from '../../../src/protocols/chat-completions/meter.ts'
import type { AnswerStream } from '../../../src/protocols/dialect.ts'
import { GenerateContentMeter } from '../../../src/protocols/generate-content/meter.ts'
import { MessagesMeter } from '../../../src/protocols/messages/meter.ts'
import { type LinkedParts, NO_LINKS } from '../../../src/protocols/request/linked-parts.ts'
import { readResponseFacts } from '../../../src/protocols/responses/facts.ts'
import { ResponsesMeter } from '../../../src/protocols/responses/meter.ts'
import { newVideo } from '../../src/postgres/tasks/support.ts'
import { translatedStream as fromGenerateContent } from '../../src/protocols/generate-content/streams.ts'
import { translatedStream as fromMessages } from '../../src/protocols/messages/streams.ts'
import { CHAT_PROVIDERS } from '../../support/chat-providers.ts'
import { chunk } from '../../support/event-stream.ts'
import { everyRun } from '../../support/every-run.ts'
import {
  clientCall,
  DONE,
  event,
  FINISH,
  type ForwardOptions,
  MODEL,
  RunningCall,
  type ScriptedUpstream,
  STAND_IN,
  usageChunk,
  word,
} from './forward-support.ts'

t.test('contradictory usage neither credits nor overbills', async (t) => {
  // Whatever counts an upstream reports, in the form of each protocol and family, native and translated, streamed and
  // whole, with the client leaving in the middle: a call never raises a balance, and a report that contradicts itself
  // bills no more than what was delivered.
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
          type: fc.constantFrom('compaction', 'message', 'advisor_message', 'fallback_message', 7),
          model: fc.constantFrom('upstream-name-of-only', 'stranger', null),
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
    ...{
      unit: '1M_tokens',
      input: '1000000',
      output: '2000000',
      cached_input: '100000',
      reasoning: '3000000',
    },
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
      [row.input_tokens, row.output_tokens, ...parts].some(
        (each) => !(Number.isSafeInteger(each) && each >= 0),
      )
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
})

t.test('interim usage is a lower bound', async (t) => {
  // What is billed of a streamed answer by the usage that its upstream reports on the way, in every protocol, passed or
  // translated: reports are a lower bound, what was said beyond them is estimated, and a count left out is no zero.
  const PROMPT_BYTES = 80
  const PROMPT_TOKENS = PROMPT_BYTES / 4
  /** What the model says, in two halves, and the tokens that are estimated for one of them. */
  const HALF = 'x'.repeat(200)
  const HALF_TOKENS = 50

  const ABORTED: Ending = { kind: 'aborted' }
  const SUCCESS: Ending = { kind: 'success' }
  const FAILED: Ending = { kind: 'failed', code: 'upstream_error', message: 'cut' }
  const TIMEOUT: Ending = { kind: 'timeout', message: 'late' }

  /** A report: null leaves a count out. */
  type Report = readonly [prompt: number | null, output: number | null]
  /** Says a half, or nothing, and then reports. */
  type Chunk = readonly [text: string, report: Report | null]

  interface Way {
    readonly open: () => AnswerStream
    readonly print: (chunks: readonly Chunk[]) => string
  }

  const given = (fields: Record<string, number | null | undefined>) =>
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null))
  const events = (payloads: readonly object[]) =>
    payloads.map((payload) => `data: ${JSON.stringify(payload)}\n\n`).join('')

  const chatCompletions = (chunks: readonly Chunk[]) =>
    events(
      chunks.map(([content, report]) => ({
        choices: content === '' ? [] : [{ index: 0, delta: { content } }],
        ...(report && { usage: given({ prompt_tokens: report[0], completion_tokens: report[1] }) }),
      })),
    )
  const messages = (chunks: readonly Chunk[]) =>
    events(
      chunks.flatMap(([text, report]) => [
        ...(text === ''
          ? []
          : [{ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }]),
        ...(report === null
          ? []
          : [
              {
                type: 'message_delta',
                delta: {},
                usage: given({ input_tokens: report[0], output_tokens: report[1] }),
              },
            ]),
      ]),
    )
  const responses = (chunks: readonly Chunk[]) =>
    events(
      chunks.flatMap(([delta, report]) => [
        ...(delta === '' ? [] : [{ type: 'response.output_text.delta', delta }]),
        ...(report === null
          ? []
          : [
              {
                type: 'response.in_progress',
                response: { usage: given({ input_tokens: report[0], output_tokens: report[1] }) },
              },
            ]),
      ]),
    )
  const generateContentChunks = (chunks: readonly Chunk[]) =>
    chunks.map(([text, report]) => ({
      candidates: [{ content: { parts: text === '' ? [] : [{ text }] } }],
      ...(report && {
        usageMetadata: given({
          promptTokenCount: report[0],
          candidatesTokenCount: report[1],
          // The vendor's total, which comes in chunks without an output as well.
          totalTokenCount: report[0] === null ? null : report[0] + (report[1] ?? 0),
        }),
      }),
    }))
  const generateContent = (chunks: readonly Chunk[]) => events(generateContentChunks(chunks))

  const WAYS: Readonly<Record<string, Way>> = {
    'chat-completions': {
      open: () => new ChatCompletionsMeter({ withholdUsage: true }),
      print: chatCompletions,
    },
    messages: { open: () => new MessagesMeter(), print: messages },
    'messages, translated': { open: fromMessages, print: messages },
    responses: { open: () => new ResponsesMeter(), print: responses },
    'generate-content, events': { open: () => new GenerateContentMeter('sse'), print: generateContent },
    'generate-content, array': {
      open: () => new GenerateContentMeter('array'),
      print: (chunks) => JSON.stringify(generateContentChunks(chunks)),
    },
    'generate-content, translated': { open: fromGenerateContent, print: generateContent },
  }

  function billed(
    { open, print }: Way,
    chunks: readonly Chunk[],
    ending: Ending,
    links: LinkedParts = NO_LINKS,
  ) {
    const stream = open()
    stream.push(Buffer.from(print(chunks)))
    const admitted = {
      request: { header: () => '' },
      known: { account: {}, key: {} },
      model: { entry: modelEntry.parse({ id: 'm' }) },
      call: { promptBytes: PROMPT_BYTES, links },
      estimate: 0n,
    }
    const record = new CallRecord(admitted as unknown as AdmittedCall, [])
    record.metered = stream
    record.ending = ending
    record.isSent = true
    const { usage, source } = record.chooseUsage()
    return [usage.prompt, usage.output, source]
  }

  interface Case {
    readonly what: string
    readonly chunks: readonly Chunk[]
    readonly ending: Ending
    readonly expected: readonly [prompt: number, output: number, source: string]
  }

  const CASES: readonly Case[] = [
    {
      what: 'a prompt that comes with every chunk is no report of the output',
      chunks: [
        [HALF, [33, null]],
        [HALF, [33, null]],
      ],
      ending: ABORTED,
      expected: [33, 2 * HALF_TOKENS, 'estimate'],
    },
    {
      what: 'nor is it where the answer comes to its end',
      chunks: [
        [HALF, [33, null]],
        [HALF, [33, null]],
      ],
      ending: SUCCESS,
      expected: [33, 2 * HALF_TOKENS, 'estimate'],
    },
    {
      what: 'zeros in every chunk are a placeholder where the client leaves',
      chunks: [
        [HALF, [0, 0]],
        [HALF, [0, 0]],
      ],
      ending: ABORTED,
      expected: [PROMPT_TOKENS, 2 * HALF_TOKENS, 'estimate'],
    },
    {
      what: 'what was said is estimated by its script',
      // Four characters of ASCII are a token, and so is one Chinese character.
      chunks: [['你好世界'.repeat(25), null]],
      ending: ABORTED,
      expected: [PROMPT_TOKENS, 100, 'estimate'],
    },
    {
      what: 'zeros that the answer ends with are zeros',
      chunks: [
        [HALF, null],
        [HALF, null],
        ['', [0, 0]],
      ],
      ending: SUCCESS,
      expected: [0, 0, 'upstream'],
    },
    {
      what: 'what was said after a report is estimated on top of it',
      chunks: [
        [HALF, [33, 7]],
        [HALF, null],
      ],
      ending: ABORTED,
      expected: [33, 7 + HALF_TOKENS, 'estimate'],
    },
    {
      what: 'also where the answer comes to its end without another',
      chunks: [
        [HALF, [33, 7]],
        [HALF, null],
      ],
      ending: SUCCESS,
      expected: [33, 7 + HALF_TOKENS, 'estimate'],
    },
    {
      what: 'a count that stays as it is does not count what was said meanwhile',
      chunks: [
        [HALF, [33, 7]],
        [HALF, [33, 7]],
      ],
      ending: FAILED,
      expected: [33, 7 + HALF_TOKENS, 'estimate'],
    },
    {
      what: 'a report that keeps up with the text needs no estimate',
      chunks: [
        [HALF, [33, 7]],
        [HALF, [33, 14]],
      ],
      ending: ABORTED,
      expected: [33, 14, 'upstream'],
    },
    {
      what: 'a later report never lowers an earlier one',
      chunks: [
        [HALF, [33, 70]],
        ['', [5, 3]],
      ],
      ending: SUCCESS,
      expected: [33, 70, 'upstream'],
    },
    {
      what: 'an output without a prompt is a lower bound as well',
      chunks: [[HALF, [null, 70]]],
      ending: ABORTED,
      expected: [PROMPT_TOKENS, 70, 'estimate'],
    },
    {
      what: 'thought that was reported and not said is owed where the time ran out',
      chunks: [['', [33, 70]]],
      ending: TIMEOUT,
      expected: [33, 70, 'upstream'],
    },
    {
      what: 'and not where the upstream failed',
      chunks: [['', [33, 70]]],
      ending: FAILED,
      expected: [0, 0, 'none'],
    },
  ]

  for (const [name, way] of Object.entries(WAYS))
    t.test(name, async (t) => {
      for (const { what, chunks, ending, expected } of CASES)
        t.same(billed(way, chunks, ending), expected, what)
    })

  t.test('parts given by URL count in an estimated prompt, and not beside a reported one', async (t) => {
    const links = { image: 2, file: 1, audio: 1, urls: [] }
    const way = WAYS.messages!
    const linked = 2 * 1600 + 16_000 + 2000
    t.same(billed(way, [[HALF, null]], ABORTED, links), [PROMPT_TOKENS + linked, HALF_TOKENS, 'estimate'])
    t.same(billed(way, [[HALF, [33, null]]], ABORTED, links), [33, HALF_TOKENS, 'estimate'])
  })
})

t.test('leaving before the usage saves nothing', async (t) => {
  // What a client owes that leaves a stream just before its usage: the upstream is read on for it behind the finish
  // reason, in every protocol, and nowhere else; what stays unknown is estimated by script.
  const REPORTED = { status: 'interrupted', input_tokens: 900, output_tokens: 4000, usage_source: 'upstream' }
  const ofMessages = {
    said:
      event({ type: 'message_start', message: { id: 'msg_1', model: 'm' } }) +
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }) +
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hello' } }),
    finish: event({ type: 'content_block_stop', index: 0 }),
    goesOn: event({
      type: 'content_block_start',
      index: 1,
      content_block: { type: 'thinking', thinking: '' },
    }),
    usage: event({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn' },
      usage: { input_tokens: 900, output_tokens: 4000 },
    }),
  }
  const candidate = (more: object) => ({ candidates: [{ content: { parts: [{ text: 'hello' }] }, ...more }] })
  const ofGenerateContent = {
    said: event(candidate({})),
    finish: event({ candidates: [{ finishReason: 'STOP' }] }),
    goesOn: null,
    usage: event({
      candidates: [{ finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 900, candidatesTokenCount: 4000, totalTokenCount: 4900 },
    }),
  }
  const STREAMS = [
    {
      client: 'chat-completions',
      upstream: 'chat-completions',
      said: word('hello'),
      finish: FINISH,
      goesOn: null,
      usage: usageChunk(900, 4000),
    },
    { client: 'messages', upstream: 'messages', ...ofMessages },
    { client: 'chat-completions', upstream: 'messages', ...ofMessages },
    { client: 'generate-content', upstream: 'generate-content', ...ofGenerateContent },
    { client: 'chat-completions', upstream: 'generate-content', ...ofGenerateContent },
    {
      client: 'responses',
      upstream: 'responses',
      said: event({ type: 'response.output_text.delta', delta: 'hello' }),
      finish: event({ type: 'response.output_item.done', item: { type: 'message' } }),
      goesOn: event({ type: 'response.output_item.added', item: { type: 'reasoning' } }),
      usage: event({
        type: 'response.completed',
        response: { usage: { input_tokens: 900, output_tokens: 4000 } },
      }),
    },
  ] as const

  for (const { client, upstream, said, finish, goesOn, usage } of STREAMS)
    t.test(`${client} over ${upstream}`, async (t) => {
      // No chunk of generate-content says that it is the last: one with a finish reason is, where nothing follows it.
      const isUnmarked = client === 'generate-content'
      const leftBehindFinish = { status: isUnmarked ? 'success' : 'interrupted', usage_source: 'estimate' }
      const hadLast = isUnmarked || client === 'responses'
      const lateUsage = new LateUsage()
      const left = (...events: string[]) => {
        const call = new RunningCall({ client: clientCall(client, 'hi', true), upstream, lateUsage })
        call.attempt.head()
        for (const text of events) call.attempt.data(text)
        call.abort()
        return call
      }
      const early = left(said)
      t.equal(early.attempt.isLeft, true, 'before the finish reason the upstream is ended at once')
      t.match(early.settlement, { status: 'interrupted', usage_source: 'estimate' })

      const late = left(said, finish)
      t.equal(late.settlements.length, 0)
      const { sent } = late
      for (const byte of Buffer.from(usage)) late.attempt.data(Buffer.from([byte]))
      t.match(late.settlement, REPORTED)
      t.equal(late.attempt.isLeft, true, 'nothing more is read')
      t.equal(late.sent, sent, 'nothing is sent to a client that has left')
      t.equal(late.inFlight, 0)

      const known = left(said, finish, usage)
      if (isUnmarked) known.attempt.end()
      t.match(known.settlement, { ...REPORTED, status: hadLast ? 'success' : 'interrupted' })

      const silent = left(said, finish)
      for (let bytes = 0; bytes <= LATE_USAGE_MAX_BYTES; bytes += 8192)
        silent.attempt.data(`: ${'x'.repeat(8188)}\n\n`)
      t.match(silent.settlement, { status: 'interrupted', usage_source: 'estimate' })

      const broken = left(said, finish)
      broken.attempt.fail('reset')
      t.match(broken.settlement, leftBehindFinish)

      if (goesOn !== null) {
        const further = left(said, finish)
        further.attempt.data(goesOn)
        t.equal(further.attempt.isLeft, true, 'a model that goes on has not finished')
        t.equal(further.settlements.length, 1)
      }

      const waiting = left(said, finish)
      lateUsage.close()
      t.match(waiting.settlement, leftBehindFinish)
      t.equal(left(said, finish).settlements.length, 1, 'a process that ends waits for nothing')
    })

  t.test('the time is bounded', async (t) => {
    const call = new RunningCall({ lateUsage: new LateUsage({ usageMs: 1 }) })
    call.attempt.head()
    call.attempt.data(word('hello') + FINISH)
    call.abort()
    while (call.settlements.length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    t.match(call.settlement, { status: 'interrupted', usage_source: 'estimate' })
    t.equal(call.attempt.isLeft, true)
  })

  t.test('an estimated prompt counts by script', async (t) => {
    const promptTokens = (content: string) => {
      const call = new RunningCall({ request: { messages: [{ role: 'user', content }] } })
      call.attempt.head()
      call.attempt.data(word('x'))
      call.abort()
      return call.settlement.input_tokens
    }
    const empty = promptTokens('')
    t.equal(promptTokens('x'.repeat(4000)) - empty, 1000, 'four letters of ASCII are a token')
    t.equal(promptTokens('中'.repeat(4000)) - empty, 4000, 'a Chinese character is one')
    t.equal(promptTokens('я'.repeat(4000)) - empty, 2500)
  })

  t.test('a whole answer whose time runs out is estimated from what came', async (t) => {
    for (const [body, output_tokens] of [
      ['', 0],
      [`{"choices":[{"message":{"content":"${'x'.repeat(40)}"}}`, 10],
    ] as const) {
      const call = new RunningCall({ request: { stream: false } })
      call.attempt.head(200, { 'content-type': 'application/json' })
      if (body !== '') call.attempt.data(body)
      call.attempt.fail('deadline', { headReceived: true })
      t.match(call.settlement, { status: 'interrupted', usage_source: 'estimate', output_tokens })
      t.ok(call.settlement.input_tokens > 0)
    }
    const unanswered = new RunningCall()
    unanswered.attempt.fail('deadline')
    t.match(unanswered.settlement, { cost: '0', usage_source: 'none' })
  })
})

t.test('leaving is charged by hand for each family', async (t) => {
  // A client leaves behind the first word of a stream of each family: what was reported by then is charged as reported, and
  // the rest by the gateway's own count. The charges are computed by hand from these prices. See docs/pricing.md.
  const PRICING = {
    unit: '1M_tokens',
    ...{ input: '10', output: '40', cached_input: '1', reasoning: '60' },
    ...{ input_audio: '30', output_audio: '80', output_image: '120' },
    ...{ server_tool_call: '0.01', server_tools: { web_search: '0.02' } },
  }
  /** With what is around it in JSON, 4,000 characters: 1,000 tokens by the gateway's own count. */
  const CONTENT = 'x'.repeat(3970)
  /** Six characters: 2 tokens by the gateway's own count. */
  const WORD = 'Hello '

  /** Nothing is reported before the end: (1000 x 10 + 2 x 40) / 1,000,000. */
  const ESTIMATED = '0.01008'
  const CHARGES: Readonly<Partial<Record<string, string>>> = {
    // In every chunk: (500 x 10 + 300 x 1 + 200 x 12.5 + 90 x 40) / 1,000,000
    qwen: '0.0114',
    // The prompt at the beginning: (500 x 10 + 200 x 1 + 100 x 12.5 + 200 x 20 + 2 x 40) / 1,000,000
    anthropic: '0.01053',
    // (700 x 10 + 200 x 1 + 100 x 12.5 + 2 x 40) / 1,000,000
    bedrock: '0.00853',
    // All but the text: (300 x 10 + 300 x 30 + 400 x 1 + 50 x 60 + 2 x 40) / 1,000,000
    gemini: '0.01548',
    vertex: '0.01548',
  }

  const PROTOCOLS: Readonly<Partial<Record<string, ChatProtocol>>> = {
    anthropic: 'messages',
    bedrock: 'messages',
    gemini: 'generate-content',
    vertex: 'generate-content',
  }
  /** What says `CONTENT`; of generate-content it is shorter by what is longer around it. */
  const saying = (protocol: ChatProtocol) =>
    clientCall(protocol, protocol === 'generate-content' ? CONTENT.slice(9) : CONTENT, true)

  /** The events of a family's recorded stream up to the first word. */
  function begun(family: string): readonly (string | Buffer)[] {
    const url = new URL(`../../fixtures/providers/${family}/stream.txt`, import.meta.url)
    const text = readFileSync(url, 'utf8')
    const events = text.slice(0, text.indexOf('\n\n', text.indexOf(WORD)) + 2).split(/(?<=\n\n)/)
    if (family !== 'bedrock') return events
    return events.map((event) => chunk(JSON.parse(event.slice(event.indexOf('{')))))
  }

  for (const family of CHAT_PROVIDERS)
    t.test(family, async (t) => {
      const protocol = PROTOCOLS[family] ?? 'chat-completions'
      const call = new RunningCall({
        client: saying(protocol),
        upstream: protocol,
        modelFields: { pricing: PRICING },
        channelFields: { only: { provider: family } },
      })
      const framed = { 'content-type': 'application/vnd.amazon.eventstream' }
      call.attempt.head(200, family === 'bedrock' ? framed : {})
      for (const event of begun(family)) call.attempt.data(event)
      t.match(call.sent, WORD)
      call.abort()
      t.match(call.settlement, {
        status: 'interrupted',
        cost: parseCredits(CHARGES[family] ?? ESTIMATED).toString(),
      })
      t.equal(call.attempt.isLeft, true)
    })

  const search = { type: 'web_search_call', id: 'ws_1', action: { type: 'search', query: 'x' } }
  const searchBlock = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }
  const groundingMetadata = { webSearchQueries: ['x'] }
  const SEARCHES: Readonly<Record<'responses' | 'messages' | 'generate-content', readonly object[]>> = {
    responses: [
      { type: 'response.created', response: { id: 'resp_1' } },
      { type: 'response.output_item.done', item: search },
      { type: 'response.output_text.delta', delta: WORD },
    ],
    messages: [
      { type: 'content_block_start', index: 0, content_block: searchBlock },
      { type: 'content_block_stop', index: 0 },
      { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: WORD } },
    ],
    'generate-content': [{ candidates: [{ content: { parts: [{ text: WORD }] }, groundingMetadata }] }],
  }

  t.test('a search that was made is charged though nothing was reported', async (t) => {
    for (const [upstream, events] of Object.entries(SEARCHES))
      for (const protocol of [upstream, 'chat-completions'] as ChatProtocol[]) {
        if (protocol !== upstream && upstream === 'responses') continue
        const call = new RunningCall({
          client: saying(protocol),
          upstream: upstream as ChatProtocol,
          modelFields: { pricing: PRICING },
        })
        call.attempt.head()
        for (const event of events) call.attempt.data(`data: ${JSON.stringify(event)}\n\n`)
        call.abort()
        // (1000 x 10 + 2 x 40) / 1,000,000 + 0.02
        const charged = { server_tool_calls: 1, cost: parseCredits('0.03008').toString() }
        t.match(call.settlement, charged, `${protocol} to ${upstream}`)
      }
  })

  const user = (...content: object[]) => [{ role: 'user', content }]
  const BASE64 = 'A'.repeat(400_000)
  const URI = `data:image/png;base64,${BASE64}`
  const image = { type: 'image_url', image_url: { url: URI } }
  const source = { type: 'base64', media_type: 'image/png', data: BASE64 }
  const made = { type: 'image_generation_call', id: 'ig_1', result: BASE64 }

  /** The prompt, the length of what is in it, and the tokens that this is taken for. */
  type Carrying = readonly [protocol: ChatProtocol, prompt: readonly object[], inline: number, tokens: number]
  const CARRYING: readonly Carrying[] = [
    ['chat-completions', user({ type: 'text', text: 'What is it?' }, image), URI.length, 1600],
    [
      'chat-completions',
      user({ type: 'input_audio', input_audio: { data: BASE64, format: 'mp3' } }),
      BASE64.length,
      2000,
    ],
    ['responses', user({ type: 'input_image', image_url: URI }), URI.length, 1600],
    ['responses', [made, { role: 'user', content: 'Bluer.' }], BASE64.length, 1600],
    ['messages', user({ type: 'image', source }), BASE64.length, 1600],
    [
      'generate-content',
      [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: BASE64 } }] }],
      BASE64.length,
      1600,
    ],
    // A file may be a text.
    ['responses', user({ type: 'input_file', file_data: `data:text/plain;base64,${BASE64}` }), 0, 0],
  ]
  const PROMPT_FIELDS: Readonly<Record<ChatProtocol, string>> = {
    'chat-completions': 'messages',
    messages: 'messages',
    responses: 'input',
    'generate-content': 'contents',
  }

  t.test('pictures and sound in the request count as given by URL, not by their bytes', async (t) => {
    for (const [protocol, prompt, inline, tokens] of CARRYING) {
      const call = new RunningCall({
        client: clientCall(protocol, '', true, { [PROMPT_FIELDS[protocol]]: prompt }),
        upstream: protocol,
        modelFields: { pricing: PRICING },
      })
      // Of a stream that has begun the request is released.
      if (protocol === 'chat-completions') {
        call.attempt.head()
        call.attempt.data(`data: ${JSON.stringify({ choices: [{ delta: { content: WORD } }] })}\n\n`)
      }
      call.abort()
      const input_tokens = Math.ceil((JSON.stringify(prompt).length - inline) / 4) + tokens
      t.match(
        call.settlement,
        { status: 'interrupted', input_tokens },
        `${protocol} ${JSON.stringify(prompt).slice(0, 80)}`,
      )
    }
  })
})

t.test('suspect usage costs no dearer tier', async (t) => {
  // The service tier of a report that contradicts itself makes a call cheaper, or as dear as it was asked for, and no dearer.
  /** A prompt of 20 tokens and an output of 2 cost 24 at the plain prices. */
  const PRICING = {
    ...{ unit: '1M_tokens', input: '1000000', output: '2000000' },
    service_tiers: { flex: '0.5', priority: '3' },
  }

  interface Report {
    readonly asked?: string | undefined
    readonly reported: string
    readonly isSuspect: boolean
  }

  const SAID = 'Two tok'
  const usageOf = ({ isSuspect }: Report) => ({ input_tokens: 20, output_tokens: isSuspect ? 1e9 + 1 : 2 })

  /** What a call costs whose client waits, as a factor on the plain price of what it was charged for. */
  function live(report: Report): string {
    const { asked, reported } = report
    const call = new RunningCall({
      request: { stream: false, ...(asked !== undefined && { service_tier: asked }) },
      modelFields: { pricing: PRICING },
      retries: 0,
    })
    const { input_tokens: prompt_tokens, output_tokens: completion_tokens } = usageOf(report)
    call.attempt.head(200, { 'content-type': 'application/json' })
    const choices = [{ index: 0, message: { content: SAID }, finish_reason: 'stop' }]
    const usage = { prompt_tokens, completion_tokens }
    call.attempt.data(JSON.stringify({ choices, usage, service_tier: reported }))
    call.attempt.end()
    const { cost, input_tokens, output_tokens, detail } = call.settlement
    t.equal(detail?.includes('usage_suspect'), report.isSuspect)
    return String(Number(printCredits(BigInt(cost))) / (input_tokens + 2 * output_tokens))
  }

  /** What an answer in the background costs. */
  function background(report: Report): string {
    const { asked, reported } = report
    const entry = modelEntry.parse({ id: MODEL, max_output_tokens: 100, pricing: PRICING })
    const body = { id: 'resp_1', status: 'completed', service_tier: reported, usage: usageOf(report) }
    const output = [{ type: 'message', content: [{ type: 'output_text', text: SAID }] }]
    const call = {
      ...{
        model: MODEL,
        outputLimit: 64,
        choices: 1,
        promptBytes: 80,
        laterBytes: 0,
        toolCallLimit: null,
        settings: '',
      },
      ...{ links: { image: 0, file: 0, audio: 0 }, builtInTools: [] },
      ...(asked !== undefined && { serviceTier: asked }),
    }
    const { idempotency: _, ...made } = newVideo('acc_1', {
      ...{ kind: 'response', model: MODEL, price: toKeptPrice(entry, entry.pricing!) },
      protocol: 'responses',
      job: {
        ...{ work: 'response', conversation: null, kept_days: 30, call },
        body: { from: 'store', key: 'a', media_type: '', bytes: 1, name: '' },
      },
    })
    const task = {
      ...made,
      ...{ state: 'storing', version: 3, channelId: 'keeper', attempts: [], isAwaited: false },
      result: {
        ...emptyResult(),
        response: readResponseFacts(Buffer.from(JSON.stringify({ ...body, output })))!,
      },
    } as unknown as Task
    const { cost, input_tokens, output_tokens, detail } = planTransition(task, 'stored', {}, { now: 9 })!
      .settlement!
    t.equal(detail?.includes('usage_suspect'), report.isSuspect)
    return String(Number(printCredits(BigInt(cost))) / (input_tokens + 2 * output_tokens))
  }

  for (const [name, factorOf] of Object.entries({ live, background }))
    t.test(name, async (t) => {
      for (const [reported, asked, believed, suspect] of [
        ['priority', undefined, '3', '1'],
        ['priority', 'flex', '3', '1'],
        ['priority', 'priority', '3', '3'],
        ['flex', undefined, '0.5', '0.5'],
        ['flex', 'priority', '0.5', '0.5'],
        ['default', 'priority', '1', '1'],
      ] as const) {
        const of = `${reported}, asked for ${asked}`
        t.equal(factorOf({ asked, reported, isSuspect: false }), believed, of)
        t.equal(factorOf({ asked, reported, isSuspect: true }), suspect, `${of}, and not believed`)
      }
    })
})

t.test('usage option refused by the upstream', async (t) => {
  // The usage option is left out only where the upstream refuses it, and nothing that a customer sends is the reason.
  const asks = (attempt: ScriptedUpstream): unknown =>
    JSON.parse(attempt.request.body.toString()).stream_options ?? null

  const openAi = (message: string, param?: string) => ({
    error: { message, type: 'invalid_request_error', param },
  })
  const fastApi = (...path: string[]) => ({
    detail: [{ type: 'extra_forbidden', loc: ['body', ...path], msg: 'Extra inputs are not permitted' }],
  })
  const UNRECOGNIZED = openAi('Unrecognized request argument supplied: stream_options')

  t.test('an upstream that refuses the option is called without it, and that is remembered', async (t) => {
    const bodies: [what: string, body: object, status?: number][] = [
      ['unrecognized argument', UNRECOGNIZED],
      ['unknown parameter', openAi("Unknown parameter: 'stream_options'.", 'stream_options')],
      ['any words, with the parameter named', openAi('Bad request.', 'stream_options')],
      ['not supported', openAi('stream_options is not supported by this model.')],
      ['quoted at the beginning', openAi('"stream_options": extra fields not permitted')],
      ['JSON Schema', openAi("Additional properties are not allowed ('stream_options' was unexpected)")],
      ['FastAPI', fastApi('stream_options'), 422],
      ['FastAPI, one field deeper', fastApi('stream_options', 'include_usage'), 422],
      ['FastAPI inside a message', { object: 'error', message: fastApi('stream_options') }, 422],
      ['FastAPI inside an error', { error: fastApi('stream_options') }, 400],
    ]
    for (const [what, body, status = 400] of bodies) {
      const usageOptionRefusals = new UsageOptionRefusals()
      const options: ForwardOptions = { usageOptionRefusals, retries: 0 }
      const first = new RunningCall(options)
      t.strictSame(asks(first.attempt), { include_usage: true })
      first.attempt.answer(body, status)
      t.equal(first.attempts.length, 2, what)
      t.equal(asks(first.attempt), null)
      t.equal(usageOptionRefusals.count(), 0, 'the retry has to prove it')
      first.attempt.succeed()
      t.match(first.settlement, { status: 'success', attempts_count: 2 })
      t.equal(usageOptionRefusals.count(), 1)
      t.equal(asks(new RunningCall(options).attempt), null)
    }
  })

  t.test('an error that only mentions the option changes nothing', async (t) => {
    const bodies: [what: string, body: object][] = [
      ['a quoted link', openAi('Failed to download https://images.example/stream_options.png.')],
      ['a quoted page', openAi('The link answered: Unrecognized request argument supplied: stream_options')],
      ['another parameter', openAi('Unknown parameter: stream_options', 'messages[0].stream_options')],
      ['FastAPI, a field of a message', fastApi('messages', '0', 'stream_options')],
      [
        'FastAPI, two problems',
        { detail: [...fastApi('stream_options').detail, ...fastApi('messages').detail] },
      ],
      ['a longer name', openAi('Unknown parameter: stream_options_v2')],
    ]
    for (const [what, body] of bodies) {
      const usageOptionRefusals = new UsageOptionRefusals()
      const call = new RunningCall({ usageOptionRefusals })
      call.attempt.answer(body, 400)
      t.equal(call.attempts.length, 1, what)
      t.match(call.error, { status: 400 })
      t.equal(usageOptionRefusals.count(), 0)
    }
  })

  t.test("an error whose words may be the client's changes nothing", async (t) => {
    const say = (content: unknown) => ({ messages: [{ role: 'user', content }] })
    const requests: [what: string, request: Readonly<Record<string, unknown>>][] = [
      ['its text', say('Unrecognized request argument supplied: stream_options')],
      ['a link', say([{ type: 'image_url', image_url: { url: 'https://a.example/stream_options' } }])],
      ['other letters of the same word', say('STREAM_OPTIONS, ｓｔｒｅａｍ_options')],
      ['a field of a message', { messages: [{ role: 'user', content: 'hi', stream_options: {} }] }],
      ['options of the stream', { stream_options: { include_usage: true, include_obfuscation: false } }],
      ['a body too large to search', say('x'.repeat(1024 * 1024))],
      ['no stream', { stream: false }],
    ]
    for (const [what, request] of requests)
      for (const body of [UNRECOGNIZED, fastApi('stream_options')]) {
        const usageOptionRefusals = new UsageOptionRefusals()
        const call = new RunningCall({ usageOptionRefusals, request })
        call.attempt.answer(body, 400)
        t.equal(call.attempts.length, 1, what)
        t.equal(usageOptionRefusals.count(), 0)
      }
  })

  t.test('a translated call is asked again without the option', async (t) => {
    for (const client of ['messages', 'generate-content', 'responses'] as const) {
      const translated = {
        client: clientCall(client, 'hi', true),
        channelFields: { only: { serve: [client] } },
      }
      const usageOptionRefusals = new UsageOptionRefusals()
      const call = new RunningCall({ usageOptionRefusals, ...translated })
      call.attempt.answer(UNRECOGNIZED, 400)
      t.equal(call.attempts.length, 2, client)
      t.equal(asks(call.attempt), null)
      const quoting = clientCall(client, 'stream_options', true)
      const quoted = new RunningCall({ ...translated, client: quoting })
      quoted.attempt.answer(UNRECOGNIZED, 400)
      t.equal(quoted.attempts.length, 1, 'its text may be quoted')
    }
  })

  t.test('a retry that is refused as well proves nothing', async (t) => {
    const usageOptionRefusals = new UsageOptionRefusals()
    const call = new RunningCall({ usageOptionRefusals })
    call.attempt.answer(UNRECOGNIZED, 400)
    call.attempt.answer(UNRECOGNIZED, 400)
    t.equal(call.attempts.length, 2)
    t.match(call.error, { status: 400 })
    const erred = new RunningCall({ usageOptionRefusals, retries: 0 })
    erred.attempt.answer(UNRECOGNIZED, 400)
    erred.attempt.head()
    erred.attempt.data(event({ error: { message: 'overloaded' } }))
    t.equal(erred.sent, event({ error: { message: 'overloaded' } }))
    t.equal(usageOptionRefusals.count(), 0)
  })

  t.test('a refusal is remembered for one channel and model, and for minutes', async (t) => {
    let now = 0
    const usageOptionRefusals = new UsageOptionRefusals(
      () => undefined,
      () => now,
    )
    const first = new RunningCall({ channels: ['old'], usageOptionRefusals })
    first.attempt.answer(UNRECOGNIZED, 400)
    first.attempt.succeed()
    const other = new RunningCall({ channels: ['new'], usageOptionRefusals })
    t.strictSame(asks(other.attempt), { include_usage: true })
    t.equal(asks(new RunningCall({ channels: ['old'], usageOptionRefusals }).attempt), null)
    now = REFUSAL_KEPT_MS
    t.equal(usageOptionRefusals.count(), 0)
    const again = new RunningCall({ channels: ['old'], usageOptionRefusals })
    t.strictSame(asks(again.attempt), { include_usage: true })
  })

  t.test('a refusal is reported once, with channel and model', async (t) => {
    const learned: string[] = []
    const usageOptionRefusals = new UsageOptionRefusals((route) => learned.push(route.upstreamModel))
    for (let i = 0; i < 2; i++) {
      const call = new RunningCall({ channels: ['old'], usageOptionRefusals })
      if (i === 0) call.attempt.answer(UNRECOGNIZED, 400)
      call.attempt.succeed()
    }
    t.same(learned, ['upstream-name-of-old'])
    t.not(learned[0], MODEL)
  })
})

t.test('upstream cost settles with the call', async (t) => {
  // What a call costs the operator: computed at its settlement from the usage that is charged, by the cost of the channel.
  // Prices in these tests are credits a token.
  const costing = (input: string, output: string, model = MODEL) => ({
    cost: {
      [model]: { unit: '1M_tokens', input, output, service_tiers: { flex: '0.5' }, cached_input: '100000' },
    },
  })
  const ONLY = { only: costing('400000', '900000') }
  const units = (credits: string): string => String(parseCredits(credits))

  function answer({ attempt }: RunningCall, text: string): void {
    attempt.stream(text)
  }

  t.test('a streamed and a whole answer', async (t) => {
    const streamed = new RunningCall({ channelFields: ONLY })
    answer(streamed, word('fine') + FINISH + usageChunk(100, 10) + DONE)
    // 100 x 1 + 10 x 2, and 100 x 0.4 + 10 x 0.9
    t.match(streamed.settlement, { cost: units('120'), upstream_cost: units('49') })
    const whole = new RunningCall({ channelFields: ONLY, request: { stream: false } })
    whole.attempt.answer({
      choices: [{ index: 0, message: { content: 'fine' }, finish_reason: 'stop' }],
      service_tier: 'flex',
      usage: { prompt_tokens: 100, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 50 } },
    })
    // (50 x 0.4 + 50 x 0.1 + 10 x 0.9) x 0.5: the model has no factor for the tier, the channel has
    t.match(whole.settlement, { cost: units('120'), upstream_cost: units('17') })
  })

  t.test('no cost: the channel has none, has one of another model, or was not called', async (t) => {
    for (const only of [{}, costing('1', '1', STAND_IN)]) {
      const call = new RunningCall({ channelFields: { only } })
      answer(call, word('fine') + FINISH + usageChunk(1, 1) + DONE)
      t.equal(call.settlement.upstream_cost, null)
    }
    const unsent = new RunningCall({
      channelFields: ONLY,
      admit: (_, written) => {
        written(new Error('The disk is full.'))
        return { requestId: 'req_test' }
      },
    })
    t.equal(unsent.settlement.upstream_cost, null)
  })

  t.test('a client that leaves: the same usage as is charged', async (t) => {
    const call = new RunningCall({ channelFields: ONLY })
    call.attempt.head()
    call.attempt.data(word('four') + word('five'))
    call.abort()
    const { input_tokens, output_tokens, upstream_cost } = call.settlement
    t.ok(input_tokens > 0 && output_tokens > 0)
    // Both prices have one decimal.
    t.equal(upstream_cost, String(BigInt(input_tokens * 4 + output_tokens * 9) * 10_000_000n))
  })

  t.test('another model costs by its own cost, and the attempt that failed nothing', async (t) => {
    const call = new RunningCall({
      channels: ['first'],
      standIns: ['second'],
      channelFields: { ...ONLY, second: costing('1500000', '1000000', STAND_IN) },
    })
    call.attempt.fail('connect')
    answer(call, word('fine') + FINISH + usageChunk(8, 3) + DONE)
    // 8 x 1.5 + 3 x 1
    t.match(call.settlement, { model: STAND_IN, upstream_cost: units('15') })
  })

  t.test('a call that is not charged costs what was reported of it', async (t) => {
    const refused = new RunningCall({ channelFields: ONLY })
    refused.attempt.refuse(400)
    t.match(refused.settlement, { cost: '0', upstream_cost: '0' })
    const silent = new RunningCall({ channelFields: ONLY })
    silent.attempt.head()
    silent.attempt.data(usageChunk(100, 0))
    silent.attempt.fail('reset', { headReceived: true })
    // 100 x 0.4
    t.match(silent.settlement, { cost: '0', upstream_cost: units('40') })
  })

  t.test('usage that is not believed costs what it is charged by, and its numbers are kept', async (t) => {
    const call = new RunningCall({ channelFields: ONLY })
    answer(
      call,
      word('fine') +
        FINISH +
        'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1,"note":"text","prompt_tokens_details":' +
        '{"cached_tokens":6}}}\n\n' +
        DONE,
    )
    const { input_tokens, cached_tokens, output_tokens, upstream_cost, detail } = call.settlement
    const fresh = input_tokens - cached_tokens
    t.equal(upstream_cost, String(BigInt(fresh * 4 + cached_tokens + output_tokens * 9) * 10_000_000n))
    const { usage_suspect, usage_reported } = JSON.parse(detail!)
    t.equal(usage_suspect, 'cached 6 > prompt 5')
    t.same(JSON.parse(usage_reported), {
      prompt_tokens: 5,
      completion_tokens: 1,
      prompt_tokens_details: { cached_tokens: 6 },
    })
  })
})

t.test('odd answers are marked', async (t) => {
  // Answers with counts that no call can have, or from another model than was asked for: in every protocol, streamed and
  // whole, they are charged once, by what was delivered, and marked in the call's detail; a usual answer is not.
  const BEYOND = MAX_CONTEXT_TOKENS + 1

  interface Way {
    readonly client: ChatProtocol
    readonly upstream: ChatProtocol
    readonly whole: (model: string, output: number) => object
    readonly stream: (model: string, output: number) => string
  }

  const ofMessages = {
    upstream: 'messages' as const,
    whole: (model: string, output_tokens: number) => ({
      ...{ type: 'message', role: 'assistant', model, content: [{ type: 'text', text: 'hello' }] },
      ...{ stop_reason: 'end_turn', usage: { input_tokens: 5, output_tokens } },
    }),
    stream: (model: string, output_tokens: number) =>
      event({ type: 'message_start', message: { id: 'msg_1', model, usage: { input_tokens: 5 } } }) +
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hello' } }) +
      event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens } }) +
      event({ type: 'message_stop' }),
  }
  const generated = (modelVersion: string, candidatesTokenCount: number) => ({
    candidates: [{ content: { parts: [{ text: 'hello' }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount },
    modelVersion,
  })
  const ofGenerateContent = {
    upstream: 'generate-content' as const,
    whole: generated,
    stream: (model: string, output: number) =>
      event(generated(model, 1)) + event(generated('unread', output)),
  }
  const response = (model: string, output_tokens: number) => ({
    ...{ object: 'response', status: 'completed', model, usage: { input_tokens: 5, output_tokens } },
    output: [{ type: 'message', content: [{ type: 'output_text', text: 'hello' }] }],
  })

  const WAYS: readonly Way[] = [
    {
      client: 'chat-completions',
      upstream: 'chat-completions',
      whole: (model, completion_tokens) => ({
        model,
        choices: [{ index: 0, message: { content: 'hello' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 5, completion_tokens },
      }),
      stream: (model, completion_tokens) =>
        event({ model, choices: [{ index: 0, delta: { content: 'hello' } }] }) +
        event({ model, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }) +
        event({ model, choices: [], usage: { prompt_tokens: 5, completion_tokens } }) +
        DONE,
    },
    { client: 'messages', ...ofMessages },
    { client: 'chat-completions', ...ofMessages },
    { client: 'generate-content', ...ofGenerateContent },
    { client: 'chat-completions', ...ofGenerateContent },
    {
      client: 'responses',
      upstream: 'responses',
      whole: response,
      stream: (model, output) =>
        event({ type: 'response.created', response: { model } }) +
        event({ type: 'response.output_text.delta', delta: 'hello' }) +
        event({ type: 'response.completed', response: response(model, output) }),
    },
  ]

  for (const way of WAYS)
    for (const isStream of [true, false])
      t.test(`${way.client} over ${way.upstream}, ${isStream ? 'stream' : 'whole'}`, async (t) => {
        const settled = (nameOf: (asked: string) => string, output: number) => {
          const call = new RunningCall({
            client: clientCall(way.client, 'hi', isStream),
            upstream: way.upstream,
          })
          const { attempt } = call
          const model = nameOf(attempt.request.upstreamModel)
          attempt.head(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
          attempt.data(isStream ? way.stream(model, output) : JSON.stringify(way.whole(model, output)))
          attempt.end()
          const { detail, ...settlement } = call.settlement
          const { usage_suspect: us, answered_by_other_model: om } = JSON.parse(detail!)
          return { settlement, us, om, oddities: call.oddities }
        }
        const usual = settled((asked) => `${asked}-2026-01-01`, 7)
        t.match(usual, {
          settlement: { status: 'success', output_tokens: 7 },
          us: undefined,
          om: undefined,
          oddities: [{ suspect: '', otherModel: '' }],
        })

        const odd = settled((asked) => `${asked}-mini`, BEYOND)
        const suspect = `output ${BEYOND} > ${MAX_CONTEXT_TOKENS}`
        t.match(odd, {
          // What was delivered is billed; a stream of generate-content says 'hello' twice.
          settlement: {
            status: 'success',
            input_tokens: 5,
            output_tokens: isStream && way.upstream === 'generate-content' ? 3 : 2,
          },
          us: suspect,
          om: 1,
          oddities: [{ suspect, otherModel: /-mini$/ }],
        })
        t.notMatch(JSON.stringify(odd.settlement), /-mini/, 'the row does not name the upstream’s model')
      })
})
