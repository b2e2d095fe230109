/** Answers of messages: metered and translated. */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { chatCompletionsRequest } from '../../../../schemas/chat/chat-completions.ts'
import { pricing } from '../../../../schemas/config/catalog.ts'
import { Failure } from '../../../../schemas/failure.ts'
import { tokenCharge, tokenPrice } from '../../../../src/core/pricing/pricing.ts'
import { keepExtra, NO_USAGE, type TokenUsage } from '../../../../src/core/pricing/usage.ts'
import { readFacts } from '../../../../src/protocols/answer/place-read.ts'
import type { AnswerStream } from '../../../../src/protocols/dialect.ts'
import { MessagesMeter, readWholeMessage } from '../../../../src/protocols/messages/meter.ts'
import { EVENT } from '../../../../src/protocols/messages/places.ts'
import { everyRun } from '../../../support/every-run.ts'
import { weighed } from '../chat-completions/reference.ts'
import { checkEverySplit } from '../every-split.ts'
import {
  begin,
  chunks,
  chunksOf,
  delta,
  deltas,
  ended,
  event,
  START,
  STOP,
  stop,
  USAGE,
  whole,
} from './answers.ts'
import { OPTIONS } from './request.ts'
import {
  CREATED_SECONDS,
  chatCall,
  GOLDEN,
  MESSAGES_STREAMS,
  MODEL,
  runInPieces,
  TO_MESSAGES,
  translatedStream,
} from './streams.ts'

t.test('response row by row', async (t) => {
  // Each row has its test, streamed and whole. See docs/translation.md, "The answer".
  t.test('the body is a chat.completion under the name that the client called', async (t) => {
    const { value, isAnswer, metered } = whole({ content: [{ type: 'text', text: 'Hi.' }] })
    t.strictSame(value, {
      id: 'msg_1',
      object: 'chat.completion',
      created: CREATED_SECONDS,
      model: MODEL,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hi.', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: {
        prompt_tokens: 10,
        completion_tokens: 4,
        total_tokens: 14,
        prompt_tokens_details: { cached_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
    })
    t.match({ isAnswer, metered }, { isAnswer: true, metered: { characters: 3, charactersSinceUsage: 0 } })
  })

  t.test('text blocks: concatenated into content; null when there are only tools', async (t) => {
    const texts = ['a', 'b'].map((text) => ({ type: 'text', text }))
    const tool = { type: 'tool_use', id: 't', name: 'f', input: {} }
    t.equal(whole({ content: texts }).value.choices[0].message.content, 'ab')
    t.equal(whole({ content: [tool] }).value.choices[0].message.content, null)
    t.equal(whole({ content: [...texts, tool] }).value.choices[0].message.content, 'ab')
    t.equal(whole({ content: [] }).value.choices[0].message.content, '')
  })

  t.test('tool_use: tool_calls[], arguments as a JSON string', async (t) => {
    const content = [
      { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'not the client’s' } },
      { type: 'tool_use', id: 't1', name: 'f', input: { city: 'Köln' } },
      { type: 'tool_use', id: 't2', name: 'g', input: {} },
    ]
    t.strictSame(whole({ content, stop_reason: 'tool_use' }).value.choices[0].message.tool_calls, [
      { id: 't1', type: 'function', function: { name: 'f', arguments: '{"city":"Köln"}' } },
      { id: 't2', type: 'function', function: { name: 'g', arguments: '{}' } },
    ])
  })

  t.test('thinking: reasoning_content; its signature kept so that the next turn can carry it', async (t) => {
    const thinking = { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' }
    const sealed = { type: 'redacted_thinking', data: 'c2VhbGVk' }
    const unsigned = { type: 'thinking', thinking: ' So.' }
    const { message } = whole({ content: [thinking, sealed, unsigned, { type: 'text', text: 'Yes.' }] }).value
      .choices[0]
    t.match(message, { content: 'Yes.', reasoning_content: 'Hm. So.' })
    t.strictSame(message.thinking_blocks, [thinking, sealed])
    t.notOk('thinking_blocks' in whole({ content: [unsigned] }).value.choices[0].message)
  })

  const REASONS = {
    end_turn: 'stop',
    stop_sequence: 'stop',
    pause_turn: 'stop',
    compaction: 'stop',
    'a reason nobody knows': 'stop',
    constructor: 'stop',
    max_tokens: 'length',
    model_context_window_exceeded: 'length',
    tool_use: 'tool_calls',
    refusal: 'content_filter',
  }
  for (const [reason, expected] of Object.entries(REASONS))
    t.test(`${reason}: ${expected}`, async (t) => {
      t.equal(whole({ content: [], stop_reason: reason }).value.choices[0].finish_reason, expected)
      const finishes = chunks(START, ended(reason), STOP).flatMap(
        (chunk) => chunk.choices?.[0]?.finish_reason ?? [],
      )
      t.same(finishes, [expected])
    })

  t.test(
    'usage: prompt_tokens are input, cache read and creation; cached_tokens are cache read',
    async (t) => {
      const usage = {
        input_tokens: 1,
        cache_read_input_tokens: 20,
        cache_creation_input_tokens: 300,
        output_tokens: 4000,
      }
      const expected = {
        prompt_tokens: 321,
        completion_tokens: 4000,
        total_tokens: 4321,
        prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 300 },
        completion_tokens_details: { reasoning_tokens: 0 },
      }
      t.strictSame(whole({ content: [], usage }).value.usage, expected)
      t.strictSame(chunks(START, ended('end_turn', usage), STOP).at(-2).usage, expected)
    },
  )

  t.test('usage that was not reported is not printed as 0', async (t) => {
    const { value, metered } = whole({ content: [{ type: 'text', text: 'Hi.' }], usage: {} })
    t.notOk('usage' in value)
    t.match(metered, { usage: null, characters: 3, charactersSinceUsage: 3 })
    const printed = chunks(START, { type: 'message_delta', delta: {} }, STOP)
    t.same(
      printed.filter((chunk) => chunk.usage),
      [],
    )
  })

  t.test('message_start gives the role chunk', async (t) => {
    const [first, ...more] = chunks(START)
    t.match(first, {
      id: 'msg_1',
      object: 'chat.completion.chunk',
      created: CREATED_SECONDS,
      model: MODEL,
      choices: [{ index: 0, delta: { role: 'assistant' }, finish_reason: null }],
      usage: null,
    })
    t.same(more, [])
  })

  t.test(
    'a tool’s index counts tools, not blocks; one without arguments gives "{}" at its stop',
    async (t) => {
      const found = deltas(
        chunks(
          START,
          begin(0, { type: 'text', text: '' }),
          delta(0, { type: 'text_delta', text: 'Looking.' }),
          stop(0),
          begin(1, { type: 'tool_use', id: 't1', name: 'f', input: {} }),
          begin(2, { type: 'tool_use', id: 't2', name: 'g', input: {} }),
          delta(2, { type: 'input_json_delta', partial_json: '{"b"' }),
          delta(1, { type: 'input_json_delta', partial_json: '' }),
          stop(1),
          delta(2, { type: 'input_json_delta', partial_json: ':1}' }),
          stop(2),
        ),
      )
      const named = (index: number, id: string, name: string) => ({
        tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }],
      })
      const piece = (index: number, json: string) => ({
        tool_calls: [{ index, function: { arguments: json } }],
      })
      t.strictSame(found.slice(1), [
        { content: 'Looking.' },
        named(0, 't1', 'f'),
        named(1, 't2', 'g'),
        piece(1, '{"b"'),
        piece(0, '{}'),
        piece(1, ':1}'),
      ])
    },
  )

  t.test('arguments that come in one piece with the block are kept', async (t) => {
    const block = { type: 'tool_use', id: 't', name: 'f', input: { a: [1] } }
    const last = deltas(chunks(START, begin(0, block), stop(0))).at(-1)
    t.strictSame(last, { tool_calls: [{ index: 0, function: { arguments: '{"a":[1]}' } }] })
  })

  t.test('text_delta and thinking_delta give content and reasoning_content', async (t) => {
    const found = deltas(
      chunks(
        START,
        delta(0, { type: 'thinking_delta', thinking: 'Hm.' }),
        delta(1, { type: 'text_delta', text: 'Yes "so"\n\u2028' }),
        delta(1, { type: 'text_delta', text: '' }),
        delta(1, { type: 'citations_delta', citation: { cited_text: 'no' } }),
      ),
    )
    t.strictSame(found.slice(1), [{ reasoning_content: 'Hm.' }, { content: 'Yes "so"\n\u2028' }])
  })

  t.test('message_stop gives the finish chunk, the usage chunk if asked, and [DONE]', async (t) => {
    const before = chunks(START, ended('end_turn'))
    t.equal(before.length, 1, 'nothing finishes before it is certain')
    const [finish, usage, done, ...more] = chunks(START, ended('end_turn'), STOP).slice(1)
    t.match(finish, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: null })
    t.match(usage, { choices: { length: 0 }, usage: { total_tokens: 14 } })
    t.equal(usage.choices.length, 0)
    t.equal(done, '[DONE]')
    t.same(more, [])
  })

  t.test('a client that did not ask for usage sees no usage at all', async (t) => {
    for (const stream_options of [undefined, null, {}, { include_usage: false }]) {
      const source = { body: Buffer.from('{}'), request: { stream_options } }
      const stream = TO_MESSAGES.openStream(chatCall({}, { source }))
      const out = Buffer.concat(
        [START, ended('end_turn'), STOP].map((data) => stream.push(event(data)) ?? Buffer.alloc(0)),
      )
      t.notMatch(out.toString(), /usage/)
      t.ok(out.toString().endsWith('data: [DONE]\n\n'))
      t.equal(stream.usage?.output, 4, 'it is counted all the same')
    }
  })

  t.test('ping and unknown events are skipped', async (t) => {
    const found = chunks(
      { type: 'ping' },
      START,
      { type: 'ping' },
      { type: 'unheard_of', text: 'x' },
      delta(0, { type: 'x' }),
    )
    t.equal(found.length, 1)
  })

  t.test('an error event or an early end: nothing more is sent, no [DONE]', async (t) => {
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
    const text = delta(0, { type: 'text_delta', text: 'Half' })
    const complete = [ended('end_turn'), STOP]
    for (const broken of [
      chunks(START, text),
      chunks(START, text, error, ...complete),
      chunks(START, text, ended('end_turn')),
    ]) {
      t.equal(broken.length, 2)
      t.same(
        broken.map((chunk) => chunk.choices[0].finish_reason),
        [null, null],
      )
    }
    const stream = translatedStream()
    stream.push(event(START))
    t.equal(
      stream.push(Buffer.from('event: content_block_delta\ndata: {"type":\n\n')),
      null,
      'what is no JSON',
    )
    t.equal(stream.push(event(STOP)), null)
    t.equal(stream.isComplete, false)
  })

  t.test('what the upstream sends after the end counts for nothing', async (t) => {
    const late = delta(0, { type: 'text_delta', text: 'late' })
    t.equal(chunks(START, STOP, late, ended('max_tokens'), STOP).at(-1), '[DONE]')
    t.equal(chunks(START, STOP, late, STOP).filter((chunk) => chunk === '[DONE]').length, 1)
  })

  t.test('a whole body that is an error, or no message at all, is passed on as one', async (t) => {
    for (const body of [
      '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
      '{"error":{"message":"no"}}',
      '{"choices":[]}',
      '<html>',
      '',
    ]) {
      const answer = TO_MESSAGES.readWhole(chatCall(), Buffer.from(body))
      t.match(answer, { isAnswer: false, metered: { usage: null, characters: 0 } }, body)
      t.equal(answer.body.toString(), body)
    }
  })
})

t.test('response beyond text', async (t) => {
  // What an answer of the messages protocol says beyond text and calls: sources, refusals, usage, legacy calls.
  const TEXT = { type: 'text', text: 'x' }
  const cited = (url: string, title: string | null = 'About it') => ({
    type: 'web_search_result_location',
    cited_text: 'x',
    encrypted_index: 'e',
    url,
    title,
  })
  const annotation = (start_index: number, end_index: number, url: string, title = 'About it') => ({
    type: 'url_citation',
    url_citation: { start_index, end_index, url, title },
  })

  t.test('citations: annotations, each source once for the text that cites it', async (t) => {
    const [one, two] = ['https://example.org/1', 'https://example.org/2']
    const content = [
      { type: 'text', text: 'Zürich 🌧: ' },
      { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'rain' } },
      {
        type: 'web_search_tool_result',
        tool_use_id: 's',
        content: [{ type: 'web_search_result', url: one, title: 'x' }],
      },
      { type: 'text', text: 'rain', citations: [cited(one), cited(one), cited(two, null)] },
      { type: 'text', text: '.', citations: null },
      { type: 'text', text: 'x', citations: [{ type: 'char_location', document_title: 'no URL' }, 7, null] },
    ]
    const expected = [annotation(10, 14, one), annotation(10, 14, two, '')]
    const { message } = whole({ content }).value.choices[0]
    t.strictSame(message.annotations, expected)
    t.equal([...message.content].slice(10, 14).join(''), 'rain')
    const found = deltas(
      chunks(
        START,
        begin(0, { type: 'text', text: '' }),
        delta(0, { type: 'text_delta', text: 'Zürich 🌧: ' }),
        stop(0),
        begin(1, { type: 'text', text: '', citations: [] }),
        delta(1, { type: 'citations_delta', citation: cited(one) }),
        delta(1, { type: 'text_delta', text: 'rain' }),
        delta(1, { type: 'citations_delta', citation: cited(two, null) }),
        stop(1),
        ended('end_turn'),
        STOP,
      ),
    )
    const told = found.filter((delta) => 'annotations' in delta)
    t.strictSame(told, [{ annotations: expected }], 'in one delta: SDKs keep the last')
  })

  t.test('why a model refuses: message.refusal', async (t) => {
    const stop_details = { type: 'refusal', category: 'cyber', explanation: 'This would harm.' }
    const message = { id: 'm', content: [], stop_reason: 'refusal', stop_details, usage: USAGE }
    const { body } = TO_MESSAGES.readWhole(chatCall(), Buffer.from(JSON.stringify(message)))
    t.match(JSON.parse(body.toString()).choices[0], {
      message: { content: '', refusal: 'This would harm.' },
      finish_reason: 'content_filter',
    })
    const last = { type: 'message_delta', delta: { stop_reason: 'refusal', stop_details }, usage: USAGE }
    t.strictSame(deltas(chunks(START, last, STOP)).slice(1), [{ refusal: 'This would harm.' }, {}])
    t.strictSame(deltas(chunks(START, ended('refusal'), STOP)).slice(1), [{}])
  })

  t.test('an answer by the tool for a JSON schema is text, and ends as text does', async (t) => {
    const block = { type: 'tool_use', id: 't', name: 'tollgate_json_answer', input: { a: 'ü' } }
    const { choices } = whole({ content: [block], stop_reason: 'tool_use' }).value
    t.strictSame(choices[0].message, { role: 'assistant', content: '{"a":"ü"}', refusal: null })
    t.equal(choices[0].finish_reason, 'stop')
    const pieces = ['{"a"', ':1}'].map((partial_json) => delta(0, { type: 'input_json_delta', partial_json }))
    const found = chunks(
      START,
      begin(0, { ...block, input: {} }),
      ...pieces,
      stop(0),
      ended('tool_use'),
      STOP,
    )
    t.strictSame(deltas(found).slice(1), [{ content: '{"a"' }, { content: ':1}' }, {}])
    t.equal(found.at(-3).choices[0].finish_reason, 'stop')
  })

  t.test('a request of legacy functions is answered with one function_call', async (t) => {
    const call = chatCall({ functions: [{ name: 'f' }] })
    const content = ['f', 'g'].map((name) => ({ type: 'tool_use', id: name, name, input: { a: 1 } }))
    const body = Buffer.from(JSON.stringify({ content, stop_reason: 'tool_use', usage: USAGE }))
    const [choice] = JSON.parse(TO_MESSAGES.readWhole(call, body).body.toString()).choices
    t.strictSame(choice.message, {
      role: 'assistant',
      content: null,
      refusal: null,
      function_call: { name: 'f', arguments: '{"a":1}' },
    })
    t.equal(choice.finish_reason, 'function_call')
    const events = [
      START,
      ...content.flatMap((block, index) => [begin(index, block), stop(index)]),
      ended('tool_use'),
      STOP,
    ]
    const found = chunksOf(TO_MESSAGES.openStream(call), events)
    t.strictSame(deltas(found).slice(1), [
      { function_call: { name: 'f', arguments: '' } },
      { function_call: { arguments: '{"a":1}' } },
      {},
    ])
    t.equal(found.at(-3).choices[0].finish_reason, 'function_call')
  })

  t.test('a client that offers tools reads tool_calls, whatever else it offers', async (t) => {
    const content = [{ type: 'tool_use', id: 't', name: 'f', input: {} }]
    const body = Buffer.from(JSON.stringify({ content, stop_reason: 'tool_use', usage: USAGE }))
    const tools = [{ type: 'function', function: { name: 'f' } }]
    for (const request of [
      { tools, functions: [{ name: 'g' }] },
      { tools, functions: null },
      { functions: [] },
      { messages: [{ role: 'user', content: 'What are "functions"?' }] },
    ]) {
      const [choice] = JSON.parse(TO_MESSAGES.readWhole(chatCall(request), body).body.toString()).choices
      t.match(choice, { message: { tool_calls: [{ id: 't' }] }, finish_reason: 'tool_calls' })
    }
  })

  t.test('usage: reasoning_tokens and the searches of the upstream, where it tells them', async (t) => {
    const usage = {
      ...USAGE,
      output_tokens_details: { thinking_tokens: 3 },
      server_tool_use: { web_search_requests: 2 },
    }
    const expected = {
      completion_tokens_details: { reasoning_tokens: 3 },
      server_tool_use: { web_search_requests: 2 },
    }
    t.match(whole({ content: [TEXT], usage }).value.usage, expected)
    t.match(chunks(START, ended('end_turn', usage), STOP).at(-2).usage, expected)
  })
})

t.test('stream split anywhere same output same usage', async (t) => {
  // Every recorded stream, split at every byte: same output, same usage, native and translated.
  // See docs/failure-modes.md, "Streams", rows 30 and 31.
  const SEED = 30
  const RANDOM_SPLITS = 200

  function checkStream(t: Test, open: () => AnswerStream, stream: Buffer, output: Buffer): void {
    const whole = runInPieces(open(), stream, [])
    // Where an event was cut off by the end, whether it counts as begun depends on nothing but its bytes.
    const check = (cuts: readonly number[]): boolean => {
      const got = runInPieces(open(), stream, cuts)
      if (got.output.equals(output) && JSON.stringify(got.said) === JSON.stringify(whole.said)) return true
      t.same(got.said, whole.said, `said, cut at ${cuts}`)
      return t.equal(got.output.toString(), output.toString(), `output, cut at ${cuts}`)
    }
    checkEverySplit(t, stream, { seed: SEED, pairs: RANDOM_SPLITS }, check)
  }

  t.test('there is a golden translation of every recorded stream', async (t) => {
    t.not(MESSAGES_STREAMS.size, 0)
    t.same([...GOLDEN.keys()].sort(), [...MESSAGES_STREAMS.keys()].sort())
  })

  for (const [name, stream] of MESSAGES_STREAMS) {
    t.test(`${name}, native: not a byte changed`, async (t) => {
      checkStream(t, () => new MessagesMeter(), stream, stream)
    })
    t.test(`${name}, translated: as golden`, async (t) => {
      checkStream(t, translatedStream, stream, GOLDEN.get(name)!)
    })
  }
})

t.test('scan agrees with json parse', async (t) => {
  // The scan of an event in place finds what JSON.parse finds, wherever the fields stand and however they are written.
  const SEED = 5
  const RUNS = 600

  /** Values that look like what is searched for, where it must not be found. */
  const noise = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constant({ type: 'error', text: 'no', usage: { output_tokens: 9 }, delta: { text: 'no' } }),
    fc.constant('","usage":{"output_tokens":9},"type":"message_stop","x":"\\'),
  )
  const usage = fc.dictionary(
    fc.constantFrom('input_tokens', 'output_tokens', 'x'),
    fc.oneof(fc.nat(), noise),
  )
  const spoken = fc.dictionary(
    fc.constantFrom('text', 'thinking', 'partial_json', 'type', 'signature', 'citation'),
    fc.oneof(fc.string({ unit: 'grapheme' }), noise),
  )
  const field = fc.oneof(
    fc.tuple(fc.constantFrom('delta', 'content_block'), spoken),
    fc.tuple(fc.constant('usage'), usage),
    fc.tuple(
      fc.constant('type'),
      fc.constantFrom('message_start', 'message_delta', 'message_stop', 'ping', 'error', 'text'),
    ),
    fc.tuple(fc.constantFrom('index', 'x', 'text', 'content'), noise),
  )
  const anyEvent = fc.uniqueArray(field, { selector: ([name]) => name, maxLength: 6 })

  const printed = (value: object, indent: number, isEscaped: boolean): Buffer => {
    const text = JSON.stringify(value, null, indent)
    const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
    return Buffer.from(isEscaped ? text.replaceAll(/[\u0080-\uffff]/g, escaped) : text)
  }

  const parsed = (json: string | undefined): unknown => (json === undefined ? undefined : JSON.parse(json))

  /** The halves of no pair stand alone in what JSON can print. */
  const spokenIn = (value: unknown): number => {
    const fields = Object.entries(Object(value))
    const said = fields.filter(([name]) => ['text', 'thinking', 'partial_json'].includes(name))
    return said.reduce((sum, [, text]) => sum + (typeof text === 'string' ? weighed(text) : 0), 0)
  }

  t.test('kind, usage and characters of an event', async (t) => {
    let spoke = 0
    everyRun(
      t,
      { seed: SEED, numRuns: RUNS },
      [anyEvent, fc.integer({ min: 0, max: 2 }), fc.boolean()],
      (fields, indent, isEscaped) => {
        const value = Object.fromEntries(fields)
        const facts = readFacts(printed(value, indent, isEscaped), EVENT)
        const characters = spokenIn(value.delta) + spokenIn(value.content_block)
        if (characters > 0) spoke++
        return (
          facts.type === value.type &&
          facts.characters === characters &&
          JSON.stringify(parsed(facts.usage)) === JSON.stringify(value.usage)
        )
      },
    )
    t.ok(spoke > RUNS / 10, `${spoke} events spoke`)
  })

  t.test('usage of a message that begins; characters of a whole one', async (t) => {
    const message = fc.record({ x: noise, usage, content: fc.array(spoken, { maxLength: 4 }) })
    everyRun(
      t,
      { seed: SEED, numRuns: RUNS },
      [message, fc.integer({ min: 0, max: 2 }), fc.boolean()],
      (value, indent, isEscaped) => {
        const begun = readFacts(printed({ type: 'message_start', message: value }, indent, isEscaped), EVENT)
        const { reported, characters } = readWholeMessage(printed(value, indent, isEscaped)).metered
        const expected = JSON.stringify(value.usage)
        return (
          JSON.stringify(parsed(begun.usage)) === expected &&
          JSON.stringify(reported ?? undefined) === expected &&
          characters === value.content.reduce((sum, block) => sum + spokenIn(block), 0)
        )
      },
    )
  })
})

t.test('usage of recorded streams', async (t) => {
  // The same golden usage, whether the stream passes or is translated.
  // See docs/failure-modes.md, "Money", rows 7, 8, 12 and 13.
  const golden: Readonly<Record<string, Partial<TokenUsage> | null>> = {
    'text-with-cache': { prompt: 20 + 300 + 1200, cached: 1200, cacheWrite: 300, output: 31 },
    'thinking-and-parallel-tools': { prompt: 412, output: 88 },
    'crlf-comments-multi-line': { prompt: 7, output: 4 },
    'web-search': {
      ...{ prompt: 2310 + 64, cached: 64, output: 120, serverToolCalls: 3 },
      ...keepExtra({ tools: { web_search: 2, url_context: 1 } }),
    },
    'usage-cumulative': { prompt: 33 + 5, cached: 5, output: 8 },
    'escapes-and-open-end': { prompt: 3, output: 6 },
    'no-output-usage': { prompt: 40, output: 0 },
    'error-first': null,
    'error-in-the-middle': { prompt: 50, output: 0 },
    'cut-off': { prompt: 1000, cached: 100, output: 0 },
  }

  const WAYS: ReadonlyArray<readonly [string, () => AnswerStream]> = [
    ['native', () => new MessagesMeter()],
    ['translated', translatedStream],
  ]

  for (const [way, open] of WAYS)
    t.test(`golden usage, ${way}`, async (t) => {
      t.same(Object.keys(golden).sort(), [...MESSAGES_STREAMS.keys()].sort())
      for (const [name, stream] of MESSAGES_STREAMS) {
        const expected = golden[name]
        const { usage } = runInPieces(open(), stream, []).said
        t.same(usage, expected === null ? null : { ...NO_USAGE, ...expected }, name)
      }
    })

  for (const [way, open] of WAYS)
    t.test(`what an interrupted stream said is left to be estimated, ${way}`, async (t) => {
      const stream = MESSAGES_STREAMS.get('cut-off')!
      const { said } = runInPieces(open(), stream, [])
      const spoken = 'Hmm.The answer is forty-two and th'.length
      t.match(said, { characters: spoken, charactersSinceUsage: spoken, isComplete: false })
      const complete = runInPieces(open(), MESSAGES_STREAMS.get('text-with-cache')!, []).said
      t.match(complete, { charactersSinceUsage: 0, isComplete: true })
      t.ok(complete.characters > 0)
    })

  t.test('a character beyond the basic plane is weighed once, also if its halves come apart', async (t) => {
    const stream = MESSAGES_STREAMS.get('escapes-and-open-end')!
    for (const [way, open] of WAYS)
      t.equal(runInPieces(open(), stream, []).said.characters, weighed('café 😀 done'), way)
  })

  for (const [way, open] of WAYS)
    t.test(`an error as the first event is the answer's error, a later one is not, ${way}`, async (t) => {
      const first = runInPieces(open(), MESSAGES_STREAMS.get('error-first')!, []).said
      t.same(JSON.parse(String(first.firstError)), {
        type: 'error',
        error: { type: 'overloaded_error', message: 'Overloaded' },
      })
      t.equal(first.hasBegun, false, 'neither a ping nor an error begins an answer')
      const later = runInPieces(open(), MESSAGES_STREAMS.get('error-in-the-middle')!, []).said
      t.match(later, { firstError: null, isComplete: false })
    })

  for (const [way, open] of WAYS)
    t.test(`an error is known by its event's name, or by the shape of most others, ${way}`, async (t) => {
      for (const stream of ['event: error\r\ndata: "no"\r\n\r\n', 'data: {"error":{"message":"no"}}\n\n'])
        t.match(runInPieces(open(), Buffer.from(stream), []).said.firstError?.toString(), /no/, stream)
      const block = '{"type":"content_block_start","content_block":{"type":"tool_use","name":"f"}}'
      const late = 'data: {"error":{"message":"late"}}\n\n'
      const none = `data: {"type":"x","error":null}\n\ndata: ${block}\n\n${late}`
      t.equal(runInPieces(open(), Buffer.from(none), []).said.firstError, null)
    })

  t.test('cache writes are charged 1.25 of the input price once, cache hits at their own', async (t) => {
    const price = tokenPrice(
      pricing.parse({ unit: '1M_tokens', input: '100', cached_input: '10', output: '200' }),
    )!
    for (const [way, open] of WAYS) {
      const { usage } = runInPieces(open(), MESSAGES_STREAMS.get('text-with-cache')!, []).said
      const credits = Number(tokenCharge(price, usage!, 0)) / 1e8
      t.equal(credits, (20 * 100 + 300 * 125 + 1200 * 10 + 31 * 200) / 1e6, way)
    }
  })

  for (const [way, open] of WAYS)
    t.test(`an answer without an output count is not one of no output, ${way}`, async (t) => {
      const { said } = runInPieces(open(), MESSAGES_STREAMS.get('no-output-usage')!, [])
      t.match(said, { characters: 8, charactersSinceUsage: 8, isComplete: true, isUsageWhole: false })
      const told = runInPieces(open(), MESSAGES_STREAMS.get('text-with-cache')!, []).said
      t.match(told, { charactersSinceUsage: 0, isComplete: true, isUsageWhole: true })
    })

  t.test(
    'a cache write of a lifetime without a price counts as one of an hour, which costs most',
    async (t) => {
      const writes = {
        ephemeral_5m_input_tokens: 10,
        ephemeral_1h_input_tokens: 20,
        ephemeral_24h_input_tokens: 40,
      }
      const usage = {
        input_tokens: 5,
        cache_creation_input_tokens: 70,
        cache_creation: writes,
        output_tokens: 1,
      }
      const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`
      for (const [way, open] of WAYS) {
        const stream = Buffer.from(
          event({ type: 'message_start', message: { id: 'm', usage } }) +
            event({
              type: 'message_delta',
              delta: { stop_reason: 'end_turn' },
              usage: { output_tokens: 3 },
            }) +
            event({ type: 'message_stop' }),
        )
        const { usage: said } = runInPieces(open(), stream, []).said
        t.match(said, { prompt: 75, cacheWrite: 70, output: 3, extra: { cacheWrite1h: 60 } }, way)
      }
    },
  )

  t.test('no one is billed by a count that cannot be', async (t) => {
    const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`
    for (const input_tokens of [-1, 1e12, '7', null, Number.NaN])
      for (const [way, open] of WAYS) {
        const stream = Buffer.from(
          event({ type: 'message_start', message: { id: 'm', usage: { input_tokens, output_tokens: 1 } } }) +
            event({ type: 'message_delta', delta: {}, usage: { output_tokens: 5 } }) +
            event({ type: 'message_stop' }),
        )
        const { usage, isUsageWhole } = runInPieces(open(), stream, []).said
        t.same([usage, isUsageWhole], [{ ...NO_USAGE, output: 5 }, false], `${way}: ${input_tokens}`)
      }
  })

  const SUMMARY = 'The user asked for a plan.'
  /** A prompt that the upstream summarises before it answers. */
  const COMPACTED = {
    start: { input_tokens: 60_000, output_tokens: 1 },
    end: {
      ...{
        input_tokens: 2,
        cache_read_input_tokens: 3146,
        cache_creation_input_tokens: 445,
        output_tokens: 74,
      },
      iterations: [
        {
          type: 'compaction',
          ...{ input_tokens: 106_576, cache_read_input_tokens: 20, cache_creation_input_tokens: 3146 },
          cache_creation: { ephemeral_5m_input_tokens: 3000, ephemeral_1h_input_tokens: 146 },
          output_tokens: 312,
        },
        { type: 'compaction', input_tokens: 100, output_tokens: 10 },
        { type: 'message', input_tokens: 2, cache_read_input_tokens: 3146, output_tokens: 74 },
      ],
    },
  }
  const COMPACTED_USAGE = {
    prompt: 2 + 3146 + 445 + 106_576 + 20 + 3146 + 100,
    ...{ cached: 3146 + 20, cacheWrite: 445 + 3146, output: 74 + 312 + 10, reasoning: 0, serverToolCalls: 0 },
    ...keepExtra({ cacheWrite1h: 146, compaction: { count: 2, largestPrompt: 106_576 + 20 + 3146 } }),
  }
  const sse = (events: readonly object[]): Buffer =>
    Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
  const compactedEvents = (start: object, ends: readonly object[], padding = '') => [
    { type: 'message_start', message: { id: 'm', usage: start } },
    { type: 'content_block_start', index: 0, content_block: { type: 'compaction', content: null } },
    { type: 'content_block_delta', index: 0, delta: { type: 'compaction_delta', content: SUMMARY } },
    { type: 'content_block_stop', index: 0 },
    ...ends.map((usage) => ({
      x: padding,
      type: 'message_delta',
      delta: { stop_reason: 'end_turn' },
      usage,
    })),
    { type: 'message_stop' },
  ]

  for (const [way, open] of WAYS)
    t.test(`summaries of the prompt are charged beside the message, ${way}`, async (t) => {
      const { start, end } = COMPACTED
      const endings = {
        once: [end],
        'by the last report': [{ ...end, iterations: [{ ...end.iterations[0]!, input_tokens: 5 }] }, end],
        'kept by a report without them': [end, { output_tokens: 74 }],
      }
      for (const [what, ends] of Object.entries(endings)) {
        const { said } = runInPieces(open(), sse(compactedEvents(start, ends)), [])
        t.same(said.usage, COMPACTED_USAGE, what)
        t.match(said, { suspect: '', isUsageWhole: true }, what)
      }
      const long = compactedEvents(start, [end], 'x'.repeat(600_000))
      t.same(runInPieces(open(), sse(long), []).said.usage, COMPACTED_USAGE, 'in a long event')
    })

  t.test('a call that ends with the summary costs what it took, and is not suspect', async (t) => {
    const iterations = [{ type: 'compaction', input_tokens: 54_453, output_tokens: 883 }]
    const usage = { input_tokens: 0, output_tokens: 0, iterations }
    const expected = { ...NO_USAGE, prompt: 54_453, output: 883 }
    const content = [{ type: 'compaction', content: SUMMARY }]
    const body = Buffer.from(JSON.stringify({ type: 'message', content, stop_reason: 'compaction', usage }))
    t.match(readWholeMessage(body), {
      isAnswer: true,
      metered: { usage: expected, characters: SUMMARY.length },
    })
    const { metered } = TO_MESSAGES.readWhole(chatCall(), body)
    t.match(metered, { usage: expected })
    // The gateway's own count of the prompt at the start is the larger one.
    for (const input_tokens of [0, 54_460])
      for (const [way, open] of WAYS) {
        const { said } = runInPieces(open(), sse(compactedEvents({ input_tokens }, [usage])), [])
        t.match(said, { usage: expected, suspect: '', isUsageWhole: true }, `${way}: ${input_tokens}`)
      }
  })

  t.test('of a stream that is cut behind the summary, the summary is left to be estimated', async (t) => {
    const { said } = runInPieces(
      new MessagesMeter(),
      sse(compactedEvents({ input_tokens: 0 }, []).slice(0, 4)),
      [],
    )
    t.match(said, { characters: SUMMARY.length, charactersSinceUsage: SUMMARY.length, isUsageWhole: false })
  })

  t.test('a count of a summary that cannot be makes the report suspect', async (t) => {
    const iterations = [{ type: 'compaction', input_tokens: -1, output_tokens: 883 }]
    const body = Buffer.from(
      JSON.stringify({ content: [], usage: { input_tokens: 1, output_tokens: 1, iterations } }),
    )
    t.match(readWholeMessage(body).metered, { suspect: 'input_tokens -1' })
  })

  const RESULT = 'web_search_tool_result'
  /** One search, one page, one search that failed, and code: the upstream bills no call of that. */
  const SERVER_TOOLS: ReadonlyArray<readonly [block: object, searches: number, pages: number]> = [
    [{ type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }, 1, 0],
    [{ type: RESULT, tool_use_id: 'srvtoolu_1', content: [{ type: 'web_search_result' }] }, 1, 0],
    [{ type: 'server_tool_use', id: 'srvtoolu_2', name: 'web_fetch', input: {} }, 1, 1],
    [
      { type: 'web_fetch_tool_result', content: { type: 'web_fetch_result', url: 'https://a.example' } },
      1,
      1,
    ],
    [{ type: 'server_tool_use', id: 'srvtoolu_3', name: 'web_search', input: {} }, 2, 1],
    [{ type: RESULT, content: { type: 'web_search_tool_result_error', error_code: 'x' } }, 1, 1],
    [{ type: 'server_tool_use', id: 'srvtoolu_4', name: 'code_execution', input: {} }, 1, 1],
    [{ type: 'tool_use', id: 'toolu_1', name: 'web_search', input: {} }, 1, 1],
  ]
  const toolsUsed = (searches: number, pages: number) => ({
    serverToolCalls: searches + pages,
    extra: { tools: { web_search: searches, ...(pages > 0 && { url_context: pages }) } },
  })

  for (const [way, open] of WAYS)
    t.test(`tools that have run count before their report, which replaces the count, ${way}`, async (t) => {
      const stream = open()
      const send = (event: object) => stream.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
      send({ type: 'message_start', message: { id: 'msg_1', usage: { input_tokens: 9, output_tokens: 1 } } })
      for (const [index, [content_block, searches, pages]] of SERVER_TOOLS.entries()) {
        const before = stream.usage
        send({ type: 'content_block_start', index, content_block })
        if ('input' in content_block) t.same(stream.usage, before, 'a tool runs when its input has ended')
        send({ type: 'content_block_stop', index })
        t.match(stream.usage, { prompt: 9, ...toolsUsed(searches, pages) }, JSON.stringify(content_block))
      }
      send({ type: 'content_block_delta', index: 9, delta: { type: 'text_delta', text: 'Rain.' } })
      t.match(stream, { isUsageWhole: false, suspect: '', usage: { output: 0, serverToolCalls: 2 } })
      send({ type: 'message_delta', delta: {}, usage: { output_tokens: 5 } })
      t.match(stream, { isUsageWhole: true, suspect: '', usage: { output: 5, serverToolCalls: 0 } })
    })

  t.test('a whole message without usage has used the tools that it shows', async (t) => {
    const content = SERVER_TOOLS.map(([block]) => block)
    const body = Buffer.from(JSON.stringify({ type: 'message', content }))
    t.match(readWholeMessage(body).metered.usage, toolsUsed(1, 1))
    t.match(TO_MESSAGES.readWhole(chatCall(), body).metered.usage, toolsUsed(1, 1), 'translated')
    const usage = { input_tokens: 1, output_tokens: 1 }
    const reported = Buffer.from(JSON.stringify({ type: 'message', content, usage }))
    t.match(readWholeMessage(reported).metered.usage, { serverToolCalls: 0 })
    t.match(TO_MESSAGES.readWhole(chatCall(), reported).metered.usage, { serverToolCalls: 0 }, 'translated')
  })
})

t.test('translation never throws', async (t) => {
  // Whatever a client or an upstream sends: a request is translated or refused as `invalid_request`, an answer is read
  // or ends. What is sent keeps the protocol's rules of turns.
  const SEED = 3
  const RUNS = 400

  const anyText = fc.oneof(
    fc.constantFrom('', ' ', 'x', '{"a":1}', '[1]', 'data:image/png;base64,AA'),
    fc.string({ maxLength: 8 }),
  )
  const sometimes = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })
  const mostly = <T, U>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<U>) =>
    fc.oneof({ arbitrary: usual, weight: 30 }, { arbitrary: odd, weight: 1 })
  const marker = sometimes(fc.constant({ type: 'ephemeral' }))

  const textPart = fc.record({ type: fc.constant('text'), text: anyText, cache_control: marker })
  const imagePart = fc.record({
    type: fc.constant('image_url'),
    image_url: fc.record({
      url: mostly(fc.constantFrom('data:image/png;base64,AA', 'https://a.example/b'), anyText),
    }),
  })
  const oddPart = fc.record({
    type: fc.constantFrom('file', 'input_audio', 'thinking', 'text'),
    file: fc.object(),
  })
  const contentOf = <T>(part: fc.Arbitrary<T>) =>
    fc.oneof(anyText, fc.array(mostly(part, oddPart), { maxLength: 3 }))
  const call = fc.record({
    id: fc.constantFrom('a', 'b', 'c.d'),
    type: fc.constant('function'),
    function: fc.record({
      name: fc.constantFrom('f', 'g'),
      arguments: mostly(fc.constantFrom('', ' ', '{}', '{"a":1}', 'null'), anyText),
    }),
  })
  const block = fc.constantFrom({ type: 'thinking', thinking: 't', signature: 's' }, { type: 'thinking' })
  const message = fc.oneof(
    fc.record({
      role: fc.constantFrom('system', 'developer'),
      content: contentOf(textPart),
      cache_control: marker,
    }),
    fc.record({ role: fc.constant('user'), content: contentOf(fc.oneof(textPart, imagePart)) }),
    fc.record(
      {
        role: fc.constant('assistant'),
        content: fc.oneof(contentOf(textPart), fc.constant(null)),
        tool_calls: fc.array(call, { maxLength: 3 }),
        thinking_blocks: fc.array(block, { maxLength: 2 }),
        cache_control: marker,
      },
      { requiredKeys: ['role'] },
    ),
    fc.record({
      role: mostly(fc.constant('tool'), fc.constant('function')),
      content: contentOf(textPart),
      tool_call_id: fc.constantFrom('a', 'b', 'c.d'),
    }),
  )
  const tool = fc.oneof(
    fc.record({
      type: fc.constant('function'),
      function: fc.record({ name: fc.constantFrom('f', 'g'), parameters: sometimes(fc.object()) }),
    }),
    fc.record({ type: fc.constantFrom('web_search', 'image_generation', 'custom') }),
  )
  const request = fc.record(
    {
      model: fc.constant('m'),
      messages: fc.array(message, { minLength: 1, maxLength: 8 }),
      tools: fc.array(tool, { maxLength: 3 }),
      tool_choice: mostly(
        fc.constantFrom('auto', 'none', 'required', { type: 'function', function: { name: 'f' } }),
        anyText,
      ),
      parallel_tool_calls: fc.boolean(),
      temperature: fc.double({ min: 0, max: 2, noNaN: true }),
      stop: fc.oneof(anyText, fc.array(anyText)),
      reasoning_effort: mostly(fc.constantFrom('low', 'high', 'none'), anyText),
      user: anyText,
      n: fc.integer({ min: 1, max: 3 }),
      functions: fc.array(fc.record({ name: fc.constantFrom('f', 'g') }), { maxLength: 2 }),
      function_call: mostly(fc.constantFrom('auto', 'none', { name: 'f' }), anyText),
      response_format: fc.record({
        type: mostly(fc.constant('json_schema'), anyText),
        json_schema: fc.record({
          schema: fc.oneof(fc.object(), fc.constant({ type: 'object', properties: {} })),
        }),
      }),
      thinking: fc.record({
        type: mostly(fc.constantFrom('enabled', 'disabled', 'adaptive'), anyText),
        budget_tokens: fc.oneof(fc.integer(), fc.double()),
      }),
      reasoning: mostly(
        fc.record({ effort: fc.constantFrom('low', 'none', '?'), exclude: fc.boolean() }),
        anyText,
      ),
      thinking_budget: fc.oneof(fc.integer({ min: 0, max: 9000 }), anyText),
      top_k: fc.integer(),
      metadata: fc.object(),
    },
    { requiredKeys: ['model', 'messages'] },
  )

  interface Sent {
    readonly max_tokens: number
    readonly messages: { role: string; content: { type: string; text?: string }[] }[]
    readonly tools?: object[]
    readonly tool_choice?: object
    readonly thinking?: { type: string; budget_tokens: number }
    readonly temperature?: number
    readonly top_k?: number
  }

  /** What the vendor refuses, and what was sent nevertheless. */
  function faults({
    max_tokens,
    messages,
    tools,
    tool_choice,
    thinking,
    temperature,
    top_k,
  }: Sent): string[] {
    const blocks = messages.flatMap((turn) => turn.content)
    const thinks = thinking !== undefined && thinking.type !== 'disabled'
    const isLate = ({ content }: Sent['messages'][number], type: string) =>
      content.findLastIndex((block) => block.type === type) >=
      content.filter((block) => block.type === type).length
    return Object.entries({
      'the first message is not a user’s': messages[0]?.role !== 'user',
      'neighbours of one role': messages.some(({ role }, i) => role === messages[i + 1]?.role),
      'an empty message': messages.some((turn) => turn.content.length === 0),
      'a blank text': blocks.some((block) => block.type === 'text' && block.text?.trim() === ''),
      'tool results that do not come first': messages.some((turn) => isLate(turn, 'tool_result')),
      'thinking that does not come first': messages.some((turn) => isLate(turn, 'thinking')),
      'calls in the history, and no tools': blocks.some((block) => block.type === 'tool_use') && !tools,
      'a choice without tools': Boolean(tool_choice) && !tools,
      'a budget out of bounds': Boolean(
        thinking?.type === 'enabled' &&
          !(thinking.budget_tokens >= 1024 && thinking.budget_tokens < max_tokens),
      ),
      'a top_k out of bounds': top_k !== undefined && (top_k < 1 || thinks),
      'a temperature out of bounds': (temperature ?? 0) > 1 || (thinks && temperature !== undefined),
    }).flatMap(([fault, isSo]) => (isSo ? [fault] : []))
  }

  t.test('a valid chat-completions request is translated, or refused with the field’s name', async (t) => {
    let translated = 0
    everyRun(
      t,
      { seed: SEED, numRuns: RUNS },
      [request, sometimes(fc.integer({ min: 1, max: 9000 }))],
      (body, outputLimit) => {
        fc.pre(chatCompletionsRequest.safeParse(JSON.parse(JSON.stringify(body))).success)
        try {
          const wire = TO_MESSAGES.encodeRequest(chatCall(body, { outputLimit: outputLimit ?? null }), {
            ...OPTIONS,
            upstreamModel: body.n === 2 ? 'claude-3-7-sonnet-latest' : 'opus-9',
          })
          const found = faults(JSON.parse(wire.body.toString()))
          if (found.length > 0) throw new Error(found.join(', '))
          translated++
        } catch (error) {
          if (!(error instanceof Failure)) throw error
          return error.code === 'invalid_request' && /^Field '[^']+' is not valid: ./.test(error.message)
        }
        return true
      },
    )
    t.ok(translated > RUNS / 3, `${translated} were translated`)
  })

  const EVENTS = [
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ]
  const event = fc.oneof(
    fc.json({ maxDepth: 3 }),
    fc
      .record(
        {
          type: fc.constantFrom(...EVENTS),
          index: fc.oneof(fc.integer({ min: 0, max: 2 }), fc.jsonValue({ maxDepth: 1 })),
          message: fc.jsonValue({ maxDepth: 2 }),
          content_block: fc.oneof(
            fc.record({ type: fc.constantFrom('tool_use', 'text', 'thinking'), id: fc.jsonValue() }),
            fc.jsonValue(),
          ),
          delta: fc.oneof(
            fc.record({
              type: fc.constantFrom('text_delta', 'input_json_delta', 'signature_delta'),
              text: fc.jsonValue(),
              partial_json: fc.string(),
            }),
            fc.jsonValue(),
          ),
          usage: fc.dictionary(
            fc.constantFrom('input_tokens', 'output_tokens', 'server_tool_use'),
            fc.jsonValue(),
          ),
        },
        { requiredKeys: ['type'] },
      )
      .map((value) => JSON.stringify(value)),
  )

  t.test('whatever an upstream sends, the answer is read or ends', async (t) => {
    everyRun(t, { seed: SEED, numRuns: RUNS }, [fc.array(event, { maxLength: 12 })], (events) => {
      const stream = Buffer.from(events.map((data) => `data: ${data}\n\n`).join(''))
      const { output } = runInPieces(translatedStream(), stream, [])
      for (const line of output.toString().split('\n\n'))
        if (line !== '' && line !== 'data: [DONE]') JSON.parse(line.replace('data: ', ''))
      return runInPieces(new MessagesMeter(), stream, []).output.equals(stream)
    })
  })

  t.test('a stream with damaged bytes is read or ends, and passes as it is', async (t) => {
    const streams = fc.constantFrom(...MESSAGES_STREAMS.values())
    const damage = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), {
      minLength: 1,
      maxLength: 4,
    })
    everyRun(t, { seed: SEED, numRuns: RUNS }, [streams, damage], (recorded, changes) => {
      const stream = Buffer.from(recorded)
      for (const [at, byte] of changes) stream[at % stream.length] = byte
      runInPieces(translatedStream(), stream, [Math.floor(stream.length / 2)])
      return runInPieces(new MessagesMeter(), stream, []).output.equals(stream)
    })
  })
})
