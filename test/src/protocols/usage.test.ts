/** The usage that upstreams report, family by family. */

import { readFileSync } from 'node:fs'
import t from 'tap'
import { type ChatProtocol, pricing } from '../../../schemas/config/catalog.ts'
import { printCredits } from '../../../schemas/money.ts'
import { tokenCharge, tokenPrice } from '../../../src/core/pricing/pricing.ts'
import { NO_USAGE } from '../../../src/core/pricing/usage.ts'
import type { AnswerStream, Metered } from '../../../src/protocols/dialect.ts'
import { protocolAdapter } from '../../../src/protocols/registry.ts'
import { readUsage } from '../../../src/protocols/usage/chat-completions.ts'
import { CHAT_PROVIDERS } from '../../support/chat-providers.ts'
import { chatCall } from './messages/streams.ts'

t.test('each family is charged by hand', async (t) => {
  // Each family of providers reports usage in its own form, whole and streamed; the expected charges are computed by hand
  // from these prices. See docs/pricing.md, "Usage".
  const price = tokenPrice(
    pricing.parse({
      unit: '1M_tokens',
      ...{ input: '10', output: '40', cached_input: '1', reasoning: '60' },
      ...{ input_audio: '30', output_audio: '80', output_image: '120' },
      ...{ server_tool_call: '0.01', server_tools: { web_search: '0.02' } },
      service_tiers: { flex: '0.5', priority: '2' },
    }),
  )!

  /** Credits. The products are tokens x the price of a million of them; cache writes cost 12.5, for an hour 20. */
  const CHARGES: Readonly<Record<string, string>> = {
    // (500 x 10 + 100 x 30 + 400 x 1 + 120 x 40 + 50 x 60 + 30 x 80) / 1,000,000 x 0.5
    openai: '0.0093',
    // (600 x 10 + 400 x 1 + 200 x 40) / 1,000,000
    azure: '0.0144',
    // (360 x 10 + 640 x 1 + 200 x 40) / 1,000,000
    deepseek: '0.01224',
    // (488 x 10 + 512 x 1 + 200 x 40) / 1,000,000
    moonshot: '0.013392',
    // (744 x 10 + 256 x 1 + 200 x 40) / 1,000,000
    groq: '0.015696',
    // (900 x 10 + 100 x 1 + 200 x 40 + 300 x 60) / 1,000,000 + 3 x 0.02
    xai: '0.0951',
    // (872 x 10 + 128 x 1 + 200 x 40) / 1,000,000
    mistral: '0.016848',
    // (500 x 10 + 300 x 1 + 200 x 12.5 + 200 x 40) / 1,000,000
    qwen: '0.0158',
    // (750 x 10 + 250 x 1 + 200 x 40) / 1,000,000
    zhipu: '0.01575',
    // (1000 x 10 + 200 x 40) / 1,000,000
    minimax: '0.018',
    // (700 x 10 + 200 x 1 + 100 x 12.5 + 180 x 40 + 20 x 60) / 1,000,000 + 2 x 0.02
    openrouter: '0.05685',
    // (700 x 10 + 300 x 1 + 120 x 40 + 80 x 60) / 1,000,000
    ark: '0.0169',
    // (500 x 10 + 200 x 1 + 100 x 12.5 + 200 x 20 + 200 x 40) / 1,000,000 + 2 x 0.02 + 0.01
    anthropic: '0.06845',
    // (700 x 10 + 200 x 1 + 100 x 12.5 + 200 x 40) / 1,000,000
    bedrock: '0.01645',
    // (300 x 10 + 300 x 30 + 400 x 1 + 50 x 40 + 50 x 60 + 100 x 120) / 1,000,000 x 0.5
    gemini: '0.0147',
    // The same x 2
    vertex: '0.0588',
  }

  const PROTOCOLS: Readonly<Partial<Record<string, ChatProtocol>>> = {
    anthropic: 'messages',
    bedrock: 'messages',
    gemini: 'generate-content',
    vertex: 'generate-content',
  }

  const fixture = (family: string, name: string): Buffer =>
    readFileSync(new URL(`../../fixtures/providers/${family}/${name}`, import.meta.url))

  const chargeOf = ({ usage, serviceTier }: Metered) =>
    tokenCharge(price, usage ?? NO_USAGE, 0, serviceTier ?? '')

  const callOf = (protocol: ChatProtocol) =>
    protocol === 'generate-content' ? chatCall({}, { source: { framing: 'sse' } }) : chatCall()

  for (const family of CHAT_PROVIDERS) {
    const upstream = PROTOCOLS[family] ?? 'chat-completions'
    const clients: ChatProtocol[] =
      upstream === 'chat-completions' ? [upstream] : [upstream, 'chat-completions']
    for (const client of clients)
      t.test(`${family}, for a client of ${client}`, async (t) => {
        const adapter = protocolAdapter(client, upstream)
        const call = client === upstream ? callOf(upstream) : chatCall()
        const whole = adapter.readWhole(call, fixture(family, 'whole.json'), family)
        t.ok(whole.isAnswer)
        t.equal(printCredits(chargeOf(whole.metered)), CHARGES[family], 'whole')
        const stream = adapter.openStream(call, family)
        const bytes = fixture(family, 'stream.txt')
        let before = 0n
        for (let at = 0; at < bytes.length; at += 7) {
          stream.push(bytes.subarray(at, at + 7))
          const soFar = chargeOf(stream)
          // The tier comes with the last report.
          if (stream.serviceTier === '') t.ok(soFar >= before, 'a client that leaves in the middle pays less')
          before = soFar
        }
        stream.end()
        t.equal(printCredits(chargeOf(stream)), CHARGES[family], 'streamed')
        t.ok(stream.isUsageWhole)
        t.equal(stream.suspect, '')
      })
  }

  t.test('without a family, fields that mean one thing are read all the same', async (t) => {
    const adapter = protocolAdapter('chat-completions', 'chat-completions')
    const families = ['deepseek', 'moonshot', 'groq', 'mistral', 'qwen', 'zhipu', 'openrouter'] as const
    for (const family of families) {
      const { metered } = adapter.readWhole(chatCall(), fixture(family, 'whole.json'))
      t.equal(printCredits(chargeOf(metered)), CHARGES[family], family)
    }
  })

  t.test('an answer translated to chat-completions is charged alike by the next gateway', async (t) => {
    const { body } = protocolAdapter('chat-completions', 'messages').readWhole(
      chatCall(),
      fixture('anthropic', 'whole.json'),
    )
    const { metered } = protocolAdapter('chat-completions', 'chat-completions').readWhole(chatCall(), body)
    t.match(metered.usage, { cacheWrite: 300, extra: { cacheWrite1h: 200 } })
  })

  t.test('a cache write of a lifetime without a price counts as one of an hour', async (t) => {
    const usage = {
      ...{ prompt_tokens: 100, completion_tokens: 1, cache_creation_input_tokens: 30 },
      cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_24h_input_tokens: 20 },
    }
    t.match(readUsage(usage), { cacheWrite: 30, extra: { cacheWrite1h: 20 } })
  })

  t.test('a report in an event of any length is read alike', async (t) => {
    const details = { cached_tokens: 20, audio_tokens: 30, image_tokens: 10 }
    const responses = {
      ...{ input_tokens: 100, output_tokens: 10, total_tokens: 150, input_tokens_details: details },
      output_tokens_details: { reasoning_tokens: 40, audio_tokens: 3 },
    }
    const chat = {
      ...{ prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
      prompt_tokens_details: {
        ...{ cached_tokens: 20, cache_creation_input_tokens: 30 },
        cache_creation: { ephemeral_1h_input_tokens: 10 },
      },
    }
    const events = {
      responses: { type: 'response.completed', response: { usage: responses } },
      'chat-completions': { choices: [], usage: chat },
    }
    for (const [protocol, event] of Object.entries(events) as [keyof typeof events, object][]) {
      const [short, long] = ['', 'x'.repeat(400_000)].map((padding) => {
        const stream = protocolAdapter(protocol, protocol).openStream(chatCall())
        stream.push(Buffer.from(`data: ${JSON.stringify({ padding, ...event })}\n\n`))
        return stream.usage
      })
      t.match(
        short,
        protocol === 'responses' ? { output: 50, extra: { inputAudio: 30 } } : { cacheWrite: 30 },
      )
      t.same(long, short, protocol)
    }
  })

  t.test('gemini counts thoughts in the total alone, on its endpoint of chat-completions', async (t) => {
    const adapter = protocolAdapter('chat-completions', 'chat-completions')
    const chunk = (content: string, usage: object, padding = '') =>
      `data: ${JSON.stringify({ padding, choices: [{ index: 0, delta: { content } }], usage })}\n\n`
    const rows = [
      [
        { prompt_tokens: 9, completion_tokens: 3, total_tokens: 105 },
        { prompt: 9, output: 96, reasoning: 93 },
      ],
      // So far it has only thought.
      [
        { prompt_tokens: 9, total_tokens: 102 },
        { prompt: 9, output: 93, reasoning: 93 },
      ],
      [
        { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
        { prompt: 9, output: 3, reasoning: 0 },
      ],
      [
        { prompt_tokens: 9, completion_tokens: 3 },
        { prompt: 9, output: 3, reasoning: 0 },
      ],
      [
        {
          ...{ prompt_tokens: 9, completion_tokens: 96, total_tokens: 105 },
          completion_tokens_details: { reasoning_tokens: 90 },
        },
        { prompt: 9, output: 96, reasoning: 90 },
      ],
    ] as const
    for (const [usage, expected] of rows) {
      const what = JSON.stringify(usage)
      const counts = { ...NO_USAGE, ...expected }
      const body = Buffer.from(JSON.stringify({ choices: [{ message: { content: 'x' } }], usage }))
      t.same(adapter.readWhole(chatCall(), body, 'gemini').metered.usage, counts, what)
      for (const padding of ['', 'x'.repeat(600_000)]) {
        const stream = adapter.openStream(chatCall(), 'gemini')
        stream.push(Buffer.from(chunk('x', usage, padding)))
        t.same(stream.usage, counts, `${what}, in a stream that is cut behind it`)
        stream.push(Buffer.from(chunk('y', { prompt_tokens: 9, completion_tokens: 97, total_tokens: 200 })))
        t.match(stream, { usage: { output: 191 }, suspect: '', isUsageWhole: true }, what)
      }
    }
    const [[usage]] = rows
    const body = Buffer.from(JSON.stringify({ choices: [{ message: { content: 'x' } }], usage }))
    t.match(
      adapter.readWhole(chatCall(), body, 'openai').metered.usage,
      { output: 3 },
      'no other family does',
    )
  })
})

t.test('each choice reports its own usage', async (t) => {
  // Several choices of a stream may each report what it has used itself: all of them are charged, and the prompt once.
  const choice = (index: number, content: string, usage?: object) => ({
    ...{ index, delta: { content }, finish_reason: usage === undefined ? null : 'stop' },
    ...(usage !== undefined && { usage }),
  })
  const ofChoice = (completion_tokens: number) => ({
    ...{ prompt_tokens: 100, completion_tokens, total_tokens: 100 + completion_tokens },
    ...{ cached_tokens: 60, completion_tokens_details: { reasoning_tokens: 5 } },
  })
  const ofCall = { prompt_tokens: 100, completion_tokens: 35, total_tokens: 135, cached_tokens: 60 }
  const spoken = [choice(0, 'One'), choice(1, 'Two')].map((one) => ({ choices: [one] }))

  const STREAMS: Readonly<Record<string, readonly object[]>> = {
    'the longer one first': [
      ...spoken,
      { choices: [choice(0, '', ofChoice(20))] },
      { choices: [choice(1, '', ofChoice(15))] },
    ],
    'the shorter one first': [
      ...spoken,
      { choices: [choice(1, '', ofChoice(15))] },
      { choices: [choice(0, '', ofChoice(20))] },
    ],
    'both in one event': [...spoken, { choices: [choice(0, '', ofChoice(20)), choice(1, '', ofChoice(15))] }],
    'each twice': [
      ...spoken,
      { choices: [choice(0, '', ofChoice(19))] },
      { choices: [choice(0, '', ofChoice(20))] },
      { choices: [choice(1, '', ofChoice(15))] },
    ],
    'and then the whole call': [
      ...spoken,
      { choices: [choice(0, '', ofChoice(20))] },
      { choices: [choice(1, '', ofChoice(15))] },
      { choices: [], usage: ofCall },
    ],
    'the whole call beside the last choice': [
      ...spoken,
      { choices: [choice(1, '')], x_groq: { usage: ofCall } },
    ],
  }

  t.test('choices that report themselves are added, and a report of the call stands', async (t) => {
    const adapter = protocolAdapter('chat-completions', 'chat-completions')
    for (const [what, events] of Object.entries(STREAMS)) {
      const stream = adapter.openStream(chatCall({}, { choices: 2 }), 'moonshot')
      for (const event of events) stream.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
      stream.end()
      const counts = { prompt: 100, cached: 60, output: 35 }
      t.match(stream, { usage: counts, suspect: '', isUsageWhole: true }, what)
    }
  })

  t.test('one choice reports the call', async (t) => {
    const stream = protocolAdapter('chat-completions', 'chat-completions').openStream(chatCall(), 'moonshot')
    for (const event of [{ choices: [choice(0, 'One')] }, { choices: [choice(0, '', ofChoice(20))] }])
      stream.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
    t.match(stream, { usage: { prompt: 100, cached: 60, output: 20, reasoning: 5 }, suspect: '' })
  })
})

t.test('later reports take nothing back', async (t) => {
  // A stream reports its usage in several events, and not each of them has all counts: what a later one leaves out stays
  // as it was. See docs/pricing.md, "Usage that contradicts itself".
  type Event = Readonly<Record<string, unknown>>

  function streamed(client: ChatProtocol, upstream: ChatProtocol, events: readonly Event[]): AnswerStream {
    const stream = protocolAdapter(client, upstream).openStream(chatCall())
    for (const event of events) stream.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
    stream.end()
    return stream
  }

  const chunk = (content: string, usage: object): Event => ({
    choices: [{ index: 0, delta: { content }, finish_reason: null }],
    usage,
  })

  t.test('chat-completions: tokens from the cache stay what they are without their details', async (t) => {
    const counts = { prompt_tokens: 100, completion_tokens: 1 }
    const details = { cached_tokens: 60, cache_write_tokens: 30 }
    const first = chunk('One', { ...counts, prompt_tokens_details: details })
    const rows = [
      ['the same prompt', { ...counts, completion_tokens: 2 }, { prompt: 100, cached: 60, cacheWrite: 30 }],
      ['a larger prompt', { ...counts, prompt_tokens: 140 }, { prompt: 140, cached: 60, cacheWrite: 30 }],
      [
        'more of it from the cache',
        { ...counts, prompt_tokens_details: { cached_tokens: 90 } },
        { prompt: 100, cached: 90, cacheWrite: 10 },
      ],
    ] as const
    for (const [what, usage, expected] of rows) {
      const said = streamed('chat-completions', 'chat-completions', [first, chunk(', two.', usage)])
      t.match(said, { usage: expected, suspect: '' }, what)
    }
  })

  const CLIENTS: readonly ChatProtocol[] = ['messages', 'chat-completions']

  t.test('messages: a report of zeros says nothing of a prompt that was reported', async (t) => {
    const started = { input_tokens: 20, cache_read_input_tokens: 80, output_tokens: 1 }
    const answer = (usage: object): Event[] => [
      { type: 'message_start', message: { id: 'msg_1', model: 'opus-9', content: [], usage: started } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'One' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
      { type: 'message_stop' },
    ]
    const rows = [
      [
        { input_tokens: 0, output_tokens: 5 },
        { prompt: 100, cached: 80 },
      ],
      [
        { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 5 },
        { prompt: 100, cached: 80 },
      ],
      // All of it came from the cache after all.
      [
        { input_tokens: 0, cache_read_input_tokens: 100, output_tokens: 5 },
        { prompt: 100, cached: 100 },
      ],
    ] as const
    for (const client of CLIENTS)
      for (const [usage, expected] of rows) {
        const said = streamed(client, 'messages', answer(usage))
        t.match(
          said,
          { usage: { ...expected, output: 5 }, suspect: '' },
          `${client} ${JSON.stringify(usage)}`,
        )
      }
  })
})
