/**
 * An answer in the protocol of an upstream, translated for a client of another protocol and read again: text, reasoning, calls, the
 * reason to finish and the usage are those of the upstream.
 */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import t from 'tap'
import type { FinishReason, Part, UsageTokens } from '../../../schemas/chat/part.ts'
import { CHAT_PROTOCOLS, type ChatProtocol } from '../../../schemas/config/catalog.ts'
import type { ChatCall } from '../../../src/protocols/dialect.ts'
import { CLIENT_SIDES, UPSTREAM_SIDES } from '../../../src/protocols/registry.ts'
import { EventReader } from '../../../src/protocols/sse/event-reader.ts'
import { translation } from '../../../src/protocols/translate/translation.ts'
import { chatWith } from './request/plain-requests.ts'

const SEED = 43
const RUNS = 200
const CREATED = 1_700_000_000

/** What an answer says. */
interface Said {
  readonly text: string
  readonly reasoning: string
  readonly calls: readonly (readonly [name: string, input: unknown])[]
  readonly reason: FinishReason | null
  readonly usage: Pick<UsageTokens, 'prompt' | 'cached' | 'output' | 'reasoning'>
}

const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }).map((text) => `w${text}`)
const name = fc.stringMatching(/^[a-z]{1,8}$/)
const answer: fc.Arbitrary<Said> = fc
  .record({
    text: fc.option(word, { nil: '' }),
    reasoning: fc.option(word, { nil: '' }),
    calls: fc.array(fc.tuple(name, fc.dictionary(name, fc.oneof(word, fc.integer()), { maxKeys: 3 })), {
      maxLength: 3,
    }),
    reason: fc.constantFrom<FinishReason>('stop', 'length', 'content_filter'),
    usage: fc
      .tuple(fc.nat({ max: 1000 }), fc.nat({ max: 1000 }), fc.nat({ max: 1000 }), fc.nat({ max: 1000 }))
      .map(([fresh, cached, said, reasoning]) => ({
        ...{ prompt: 1 + fresh + cached, cached, output: 1 + said + reasoning, reasoning },
      })),
  })
  // A model that says nothing and calls nothing gives no answer; reasoning is counted where there is some.
  .map(({ text, calls, reasoning, usage, ...rest }) => ({
    ...rest,
    calls,
    reasoning,
    text: text === '' && calls.length === 0 ? 'w' : text,
    usage: reasoning === '' ? { ...usage, reasoning: 0 } : usage,
    ...(calls.length > 0 && { reason: 'tool_calls' as const }),
  }))

function toParts({ text, reasoning, calls, reason, usage }: Said): readonly Part[] {
  const called = calls.flatMap(([name, input], index): Part[] => [
    { type: 'tool_call', choice: 0, index, id: `call_${index}`, name, signature: null },
    { type: 'tool_arguments', choice: 0, index, json: JSON.stringify(input) },
  ])
  return [
    { type: 'start', id: 'answer_1', model: 'm' },
    ...(reasoning === '' ? [] : [{ type: 'reasoning', choice: 0, text: reasoning } as const]),
    ...(text === '' ? [] : [{ type: 'text', choice: 0, text } as const]),
    ...called,
    { type: 'finish', choice: 0, reason: reason! },
    { type: 'usage', usage: { ...usage, cacheWrite: 0, serverToolCalls: 0 } },
    { type: 'end' },
  ]
}

const asked = (protocol: ChatProtocol): ChatCall => {
  const more = protocol === 'chat-completions' ? { stream_options: { include_usage: true } } : {}
  const call = chatWith(protocol, more)
  return { ...call, stream: true, source: { ...(call.source as object), framing: 'sse' } }
}

function print(protocol: ChatProtocol, parts: readonly Part[]): Buffer {
  const printer = CLIENT_SIDES[protocol].printer(asked(protocol), { upstream: protocol, created: CREATED })
  for (const part of parts) printer.print(part)
  return printer.take() ?? Buffer.alloc(0)
}

function read(protocol: ChatProtocol, bytes: Buffer): Said {
  const reader = UPSTREAM_SIDES[protocol].reader(undefined)
  const said = {
    text: '',
    reasoning: '',
    inputs: [] as string[],
    names: [] as string[],
    reason: null as FinishReason | null,
  }
  const take = (part: Part) => {
    if (part.type === 'text') said.text += part.text
    if (part.type === 'reasoning') said.reasoning += part.text
    if (part.type === 'tool_call') said.names[part.index] = part.name
    if (part.type === 'tool_arguments') said.inputs[part.index] = (said.inputs[part.index] ?? '') + part.json
    if (part.type === 'finish') said.reason = part.reason
  }
  const events = new EventReader((event, data) => reader.read(event, data, take))
  events.push(bytes)
  events.end()
  reader.end?.(take)
  const { prompt, cached, output, reasoning } = reader.report ?? { cached: -1, reasoning: -1 }
  return {
    ...{ text: said.text, reasoning: said.reasoning, reason: said.reason },
    calls: said.names.map((called, index) => [called, JSON.parse(said.inputs[index] || '{}')]),
    usage: { prompt: prompt ?? -1, cached, output: output ?? -1, reasoning },
  }
}

for (const protocol of CHAT_PROTOCOLS)
  t.test(`${protocol} is read as it is printed`, async (t) => {
    fc.assert(
      fc.property(answer, (said) => t.same(read(protocol, print(protocol, toParts(said))), said)),
      { seed: SEED, numRuns: 20 },
    )
  })

for (const client of CHAT_PROTOCOLS)
  for (const upstream of CHAT_PROTOCOLS.filter((other) => other !== client))
    t.test(`${upstream} for clients of ${client}`, async (t) => {
      const property = fc.property(answer, (said) => {
        const sent = print(upstream, toParts(said))
        const stream = translation(
          [client, CLIENT_SIDES[client]],
          [upstream, UPSTREAM_SIDES[upstream]],
          () => CREATED * 1000,
        ).openStream(asked(client))
        const out = Buffer.concat([stream.push(sent), stream.end()].filter((bytes) => bytes !== null))
        const got = read(client, out)
        const wanted = read(upstream, sent)
        if (JSON.stringify(got) !== JSON.stringify(wanted))
          throw new Error(`${JSON.stringify(got)} is not ${JSON.stringify(wanted)}`)
        if (stream.usage?.prompt !== wanted.usage.prompt || stream.usage.output !== wanted.usage.output)
          throw new Error('the metered usage')
      })
      const { failed, errorInstance } = fc.check(property, { seed: SEED, numRuns: RUNS })
      t.notOk(failed, String((errorInstance as Error | null)?.message))
    })

/** Deltas of two calls from upstreams that number calls unlike the vendor. */
const NUMBERED: Readonly<Record<string, (at: number) => readonly object[]>> = {
  'without an index': (at) => [{ id: `id_${at}`, function: { name: `f${at}`, arguments: `{"n":${at}}` } }],
  'without index and id': (at) => [{ function: { name: `f${at}`, arguments: `{"n":${at}}` } }],
  'all with the first index': (at) => [
    { index: 0, id: `id_${at}`, function: { name: `f${at}`, arguments: '' } },
    { index: 0, id: `id_${at}`, function: { name: `f${at}`, arguments: `{"n":${at}}` } },
  ],
  'from any index on': (at) => [
    { index: 7 * at - 1, id: `id_${at}`, function: { name: `f${at}` } },
    { index: 7 * at - 1, id: `other_${at}`, function: { arguments: `{"n":${at}}` } },
  ],
}

for (const [how, callDeltas] of Object.entries(NUMBERED))
  t.test(`calls of chat-completions upstreams, ${how}`, async (t) => {
    const chunks = [...callDeltas(1), ...callDeltas(2)].map((call) => ({
      choices: [{ index: 0, delta: { tool_calls: [call] } }],
    }))
    const last = { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }
    const sent = [...chunks, last].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')
    for (const client of CHAT_PROTOCOLS.filter((other) => other !== 'chat-completions')) {
      const sides = [
        [client, CLIENT_SIDES[client]],
        ['chat-completions', UPSTREAM_SIDES['chat-completions']],
      ] as const
      const stream = translation(...sides).openStream(asked(client))
      const printed = [stream.push(Buffer.from(sent)), stream.end()].filter((bytes) => bytes !== null)
      const { calls } = read(client, Buffer.concat(printed))
      t.same(
        calls,
        [
          ['f1', { n: 1 }],
          ['f2', { n: 2 }],
        ],
        client,
      )
    }
  })
