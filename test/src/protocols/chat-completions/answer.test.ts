/** Answers of chat-completions: metered, assembled, printed. */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { z } from 'zod'
import type { Part } from '../../../../schemas/chat/part.ts'
import { countCharacters } from '../../../../src/core/pricing/text-tokens.ts'
import { findFailure, hasChoiceContent } from '../../../../src/protocols/answer/content.ts'
import { readFacts } from '../../../../src/protocols/answer/place-read.ts'
import { PlaceScanner } from '../../../../src/protocols/answer/place-scan.ts'
import type { AnswerFacts } from '../../../../src/protocols/answer/places.ts'
import { toCounts } from '../../../../src/protocols/answer/reported-usage.ts'
import { AssembledCompletion } from '../../../../src/protocols/chat-completions/assembled.ts'
import { ChatCompletionsMeter } from '../../../../src/protocols/chat-completions/meter.ts'
import { CHUNK } from '../../../../src/protocols/chat-completions/places.ts'
import { ChatCompletionCollector } from '../../../../src/protocols/chat-completions/translation/collector.ts'
import {
  ChatCompletionsPrinter,
  type PrinterOptions,
} from '../../../../src/protocols/chat-completions/translation/printer.ts'
import { completionAsStream, WholeResponse } from '../../../../src/protocols/chat-completions/whole.ts'
import { EventReader, MAX_EVENT_CHARS } from '../../../../src/protocols/sse/event-reader.ts'
import { MAX_READ_EVENT_BYTES } from '../../../../src/protocols/sse/framer.ts'
import { type PartReader, TranslatedStream } from '../../../../src/protocols/translate/stream.ts'
import { readUsage } from '../../../../src/protocols/usage/chat-completions.ts'
import { Random } from '../../../simulation/random.ts'
import { ANY_CHARACTER } from '../../../support/any-character.ts'
import { everyRun } from '../../../support/every-run.ts'
import { checkEverySplit, outputInPieces } from '../every-split.ts'
import { runInPieces } from '../messages/streams.ts'
import {
  charactersOf,
  hasFinish,
  isUsageOnly,
  referenceOf,
  STREAMS,
  saidBy,
  saysSomething,
  weighed,
  withoutUsageChunks,
} from './reference.ts'

t.test('chunk scan agrees with json parse', async (t) => {
  // The one-pass scan against JSON.parse: on any JSON it finds the same facts, on garbage it ends without an error.
  const SEED = 7
  const RUNS = 1000

  const NAMES = ['content', 'reasoning_content', 'refusal', 'arguments', 'usage', 'choices', 'error']
  const name = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...NAMES, 'finish_reason', 'delta', 'text', 'us', 'usages', '') },
    fc.string({ unit: ANY_CHARACTER, maxLength: 6 }).filter((text) => text !== '__proto__'),
  )
  const text = fc.oneof(
    fc.string({ unit: ANY_CHARACTER, maxLength: 12 }),
    fc.constantFrom(
      '"',
      '\\',
      '\\"',
      '","usage":{',
      '😀',
      '𝄞\u0000',
      '\u2028',
      'stop',
      '[DONE]',
      '{"content":"x"}',
    ),
  )
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      text,
      fc.constantFrom(null, true, false, 0, 1, -1.5e-7, 1e21),
      fc.array(tie('json'), { maxLength: 3 }),
      fc.dictionary(name, tie('json'), { maxKeys: 5, noNullPrototype: true }),
    ),
  }))
  const object = fc.dictionary(name, json, { maxKeys: 8, noNullPrototype: true })

  /** The same JSON as other programs would print it. */
  const PRINTERS: ReadonlyArray<(value: unknown) => string> = [
    (value) => JSON.stringify(value),
    (value) => JSON.stringify(value, null, 2),
    (value) => JSON.stringify(value, null, '\t\r\n '),
    (value) => escaped(JSON.stringify(value), (hex) => hex),
    (value) => escaped(JSON.stringify(value), (hex) => hex.toUpperCase()),
    (value) => JSON.stringify(value).replaceAll('/', '\\/'),
  ]

  function escaped(json: string, hexCase: (hex: string) => string): string {
    return json.replace(/[\u0080-\uffff]/g, (unit) => {
      return `\\u${hexCase(unit.charCodeAt(0).toString(16).padStart(4, '0'))}`
    })
  }

  t.test('any object, printed in any way, gives the facts that JSON.parse gives', async (t) => {
    const printed = fc.tuple(object, fc.constantFrom(...PRINTERS))
    everyRun(t, { seed: SEED, numRuns: RUNS }, [printed], ([value, print]) => {
      const bytes = Buffer.from(print(value))
      const parsed = JSON.parse(bytes.toString())
      const facts = readFacts(bytes, CHUNK)
      const usage = facts.usage === undefined ? null : JSON.parse(facts.usage)
      const isError = findFailure(facts) !== null
      const whole = new WholeResponse(bytes)
      const report = readUsage(parsed.usage)
      const isAnswer = !isError && ((report !== null && report.output !== null) || hasChoiceContent(parsed))
      deepStrictEqual([whole.usage, whole.isAnswer], [report && toCounts(report), isAnswer])
      const isObject = (v: unknown) => typeof v === 'object' && v !== null && !Array.isArray(v)
      deepStrictEqual(
        {
          characters: facts.characters,
          usage,
          isUsageOnly: usage !== null && !facts.hasChoices && !isError,
          isError,
          hasFinish: facts.hasFinish,
        },
        {
          characters: charactersOf(parsed),
          usage: isObject(parsed.usage) ? parsed.usage : null,
          isUsageOnly: isUsageOnly(parsed),
          isError: saysSomething(parsed.error),
          hasFinish: hasFinish(parsed),
        },
      )
    })
  })

  t.test('any object gives a stream the same facts, wherever it is split', async (t) => {
    const printed = fc.tuple(object, fc.constantFrom(...PRINTERS))
    everyRun(t, { seed: SEED, numRuns: RUNS }, [printed, fc.nat()], ([value, print], at) => {
      const bytes = Buffer.from(print(value))
      const read: AnswerFacts[] = []
      const scanner = new PlaceScanner(CHUNK, (facts) => read.push(facts))
      const cut = at % (bytes.length + 1)
      scanner.push(bytes, 0, cut)
      scanner.push(bytes, cut)
      const { spoken: _, spokenStart: _start, spokenEnd: _end, ...facts } = readFacts(bytes, CHUNK)
      deepStrictEqual(
        read.map(({ spoken, spokenStart, spokenEnd, ...found }) => found),
        [facts],
      )
    })
  })

  t.test('characters are weighed by script, escaped or not', async (t) => {
    everyRun(
      t,
      { seed: SEED, numRuns: RUNS },
      [fc.string({ unit: ANY_CHARACTER }), fc.constantFrom(...PRINTERS)],
      (value, print) => {
        const bytes = Buffer.from(print(value))
        return countCharacters(bytes, 1, bytes.length - 1) === weighed(value)
      },
    )
    t.equal(countCharacters(Buffer.from('\\ud83d\\ude00\\uD83D\\uDE00\\n\\\\'), 0, 28), 2 * 5.5 + 2)
  })

  t.test('garbage is scanned to its end without an error', async (t) => {
    const recorded = [...STREAMS.values()]
    const damage = fc.record({
      bytes: fc.constantFrom(...recorded),
      from: fc.nat(),
      length: fc.nat({ max: 2000 }),
      put: fc.uint8Array({ maxLength: 8 }),
      at: fc.nat(),
    })
    const damaged = damage.map(({ bytes, from, length, put, at }) => {
      const start = from % bytes.length
      const part = Buffer.from(bytes.subarray(start, start + length))
      part.set(put.subarray(0, part.length), part.length <= put.length ? 0 : at % (part.length - put.length))
      return part
    })
    const symbols = fc.array(fc.constantFrom(...'{}[]":,\\u0 adeé1', '"usage":', '"content":"', '"error"'))
    const garbage = fc.oneof(
      damaged,
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
      symbols.map((parts) => Buffer.from(parts.join(''))),
    )
    everyRun(t, { seed: SEED, numRuns: RUNS }, [garbage], (bytes) => {
      const { characters, usage } = new WholeResponse(bytes)
      return characters >= 0 && characters <= 1.5 * bytes.length && (usage === null || usage.prompt >= 0)
    })
  })

  t.test('a report that is none is not taken for one', async (t) => {
    const usageOf = (usage: string) => new WholeResponse(Buffer.from(`{"choices":[],"usage":${usage}}`)).usage
    const good = '{"prompt_tokens":5,"completion_tokens":0}'
    t.match(usageOf(good), { prompt: 5, output: 0, cached: 0 })
    const NONE = [
      'null',
      '{}',
      '[]',
      '7',
      '"12"',
      'true',
      '{"prompt_tokens":"5","completion_tokens":"6"}',
      '{"prompt_tokens":1e300,"completion_tokens":1}',
      '{"prompt_tokens":1e999,"completion_tokens":1}',
      '{"prompt_tokens":1,"completion_tokens":-1}',
    ]
    for (const text of NONE) t.equal(usageOf(text), null, text)
  })

  t.test('a count that a report leaves out stays unknown', async (t) => {
    const usageOf = (usage: string) => {
      const { usage: told, isUsageWhole } = new WholeResponse(Buffer.from(`{"choices":[],"usage":${usage}}`))
      return [told?.prompt, told?.output, isUsageWhole]
    }
    t.same(usageOf('{"prompt_tokens":5}'), [5, 0, false])
    t.same(usageOf('{"completion_tokens":5}'), [0, 5, false])
    t.same(usageOf('{"prompt_tokens":5,"completion_tokens":null}'), [5, 0, false])
    t.same(usageOf('{"prompt_tokens":5,"completion_tokens":0}'), [5, 0, true])
  })

  t.test('a byte order mark in front changes nothing', async (t) => {
    const usage = { prompt_tokens: 2, completion_tokens: 3 }
    const marked = Buffer.from(`\ufeff${JSON.stringify({ usage, error: { message: 'no' } })}`)
    t.match(new WholeResponse(marked), { usage: { prompt: 2, output: 3 }, isAnswer: false })
  })

  t.test('parts of the prompt and of the output never exceed the whole', async (t) => {
    const usage = {
      prompt_tokens: 10.7,
      completion_tokens: 3,
      prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 9, audio_tokens: null },
      completion_tokens_details: { reasoning_tokens: 50 },
    }
    const read = new WholeResponse(Buffer.from(JSON.stringify({ usage }))).usage
    t.strictSame(read, { prompt: 10, cached: 8, cacheWrite: 2, output: 3, reasoning: 3, serverToolCalls: 0 })
  })
})

t.test('stream split anywhere same output same usage', async (t) => {
  // Every recorded stream, split at every byte: same output, same usage.
  // See docs/failure-modes.md, "Streams", rows 30 and 31.
  const SEED = 31
  const RANDOM_SPLITS = 500

  function run(stream: Buffer, cuts: readonly number[], withholdUsage: boolean) {
    const meter = new ChatCompletionsMeter({ withholdUsage })
    return { output: outputInPieces(meter, stream, cuts), said: saidBy(meter) }
  }

  for (const [name, stream] of STREAMS) {
    t.test(name, async (t) => {
      const text = stream.toString('utf8')
      // A stream that lacks its last empty line is read as if it had it.
      const said = referenceOf(`${text}\n\n`)
      for (const withholdUsage of [true, false]) {
        const expected = withholdUsage ? Buffer.from(withoutUsageChunks(text)) : stream
        const check = (cuts: readonly number[]) => {
          const got = run(stream, cuts, withholdUsage)
          if (got.output.equals(expected) && JSON.stringify(got.said) === JSON.stringify(said)) return true
          t.same(got.said, said, `said, cut at ${cuts} (withheld: ${withholdUsage})`)
          return t.equal(got.output.toString(), expected.toString(), `output, cut at ${cuts}`)
        }
        checkEverySplit(t, stream, { seed: SEED, pairs: RANDOM_SPLITS }, check)
      }
    })
  }

  t.test(
    'an event too long to be kept is passed on and read however split, as is what follows',
    async (t) => {
      const chunk = (delta: object) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`
      const usage = 'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n'
      const text = 'ä'.repeat(MAX_READ_EVENT_BYTES / 2)
      const characters = weighed(`before${text}after${text}`)
      const long = chunk({ content: text })
      const before = chunk({ content: 'before' })
      const after = chunk({ content: 'after' })
      const longFrom = before.length
      const longTo = longFrom + Buffer.byteLength(long)
      const stream = Buffer.from(before + long + after + usage + long + usage)
      const outputs = {
        true: Buffer.from(before + long + after + long),
        false: stream,
      }
      const near = (at: number) => [at - 2, at - 1, at, at + 1, at + 2]
      const places = [
        ...near(longFrom),
        ...near(longFrom + MAX_READ_EVENT_BYTES),
        ...near(longTo),
        ...near(longTo + after.length),
        ...near(longTo + after.length + usage.length),
        ...near(stream.length - usage.length),
      ].filter((at) => at < stream.length)
      const random = new Random(SEED)
      const splits = [
        [],
        ...places.map((at) => [at]),
        ...places
          .slice(0, 20)
          .map(() => [random.pick(places), random.int(0, stream.length)].sort((a, b) => a - b)),
        Array.from({ length: Math.floor(stream.length / 65_536) }, (_, i) => (i + 1) * 65_536),
      ]
      for (const cuts of splits) {
        for (const withholdUsage of [true, false] as const) {
          const { output, said } = run(stream, cuts, withholdUsage)
          if (!output.equals(outputs[`${withholdUsage}`])) t.fail(`output, cut at ${cuts}`)
          if (said.characters !== characters) t.fail(`${said.characters} characters, cut at ${cuts}`)
          if (said.usage?.output !== 2) t.fail(`usage, cut at ${cuts}`)
        }
      }
      t.ok(splits.length > 40)
    },
  )
})

t.test('streams are assembled', async (t) => {
  // A stream put together says what the whole answer would: every field, those that nothing here knows too.
  const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
  const assembled = (text: string, cut = text.length) => {
    const whole = new AssembledCompletion()
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; at += cut) whole.push(bytes.subarray(at, at + cut))
    return JSON.parse(whole.body().toString())
  }

  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' }
  const delta = (value: object, more: object = {}) =>
    event({ ...head, choices: [{ index: 0, delta: value, finish_reason: null, ...more }] })
  const call = (index: number, more: object, fields: object = {}) =>
    delta({ tool_calls: [{ index, ...fields, function: more }] })

  t.test('texts, thoughts, calls and what else a delta has', async (t) => {
    const text =
      delta({ role: 'assistant', content: '' }) +
      delta({ reasoning_content: 'Let me ' }) +
      delta({ reasoning_content: 'see.' }) +
      delta({ content: 'Grü' }, { logprobs: { content: [{ token: 'Grü', logprob: -0.1 }] } }) +
      delta({ content: 'ße 🌞' }, { logprobs: { content: [{ token: 'ße', logprob: -0.2 }] } }) +
      call(0, { name: 'weather', arguments: '' }, { id: 'call_1', type: 'function' }) +
      call(1, { name: 'time', arguments: '{' }, { id: 'call_2', type: 'function' }) +
      call(0, { arguments: '{"place":' }) +
      call(0, { arguments: '"Oslo"}' }) +
      call(1, { arguments: '}' }) +
      delta({ annotations: [{ type: 'url_citation', url: 'https://a.example' }] }) +
      delta({ annotations: [{ type: 'url_citation', url: 'https://b.example' }] }) +
      event({ ...head, choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }) +
      event({ ...head, choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } }) +
      'data: [DONE]\n\n'
    const expected = {
      ...head,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'Grüße 🌞',
            reasoning_content: 'Let me see.',
            tool_calls: [
              {
                id: 'call_1',
                type: 'function',
                function: { name: 'weather', arguments: '{"place":"Oslo"}' },
              },
              { id: 'call_2', type: 'function', function: { name: 'time', arguments: '{}' } },
            ],
            annotations: [
              { type: 'url_citation', url: 'https://a.example' },
              { type: 'url_citation', url: 'https://b.example' },
            ],
          },
          finish_reason: 'tool_calls',
          logprobs: {
            content: [
              { token: 'Grü', logprob: -0.1 },
              { token: 'ße', logprob: -0.2 },
            ],
          },
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 4 },
    }
    for (const cut of [1, 7, text.length]) t.strictSame(assembled(text, cut), expected)
  })

  t.test('calls with the same index are told apart by their ids', async (t) => {
    const text =
      call(0, { name: 'weather', arguments: '{' }, { id: 'call_1' }) +
      call(0, { arguments: '}' }) +
      call(0, { name: 'time', arguments: '{"a":' }, { id: 'call_2' }) +
      call(0, { arguments: '1}' }, { id: 'call_2' })
    t.strictSame(assembled(text).choices[0].message.tool_calls, [
      { id: 'call_1', function: { name: 'weather', arguments: '{}' } },
      { id: 'call_2', function: { name: 'time', arguments: '{"a":1}' } },
    ])
  })

  t.test('several choices, in their order', async (t) => {
    const chunk = (index: number, content: string, finish_reason: string | null = null) =>
      event({ ...head, choices: [{ index, delta: { content }, finish_reason }] })
    const { choices } = assembled(
      chunk(1, 'b') + chunk(0, 'a') + chunk(1, 'B', 'stop') + chunk(0, 'A', 'length'),
    )
    t.match(choices, [
      { index: 0, message: { role: 'assistant', content: 'aA' }, finish_reason: 'length' },
      { index: 1, message: { role: 'assistant', content: 'bB' }, finish_reason: 'stop' },
    ])
  })

  t.test('a whole answer that was printed as a stream is itself again', async (t) => {
    const whole = {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        { index: 0, message: { role: 'assistant', content: 'hi', refusal: null }, finish_reason: 'stop' },
      ],
      usage: { prompt_tokens: 1, completion_tokens: 1 },
    }
    const stream = completionAsStream(Buffer.from(JSON.stringify(whole)), true)
    t.match(assembled(stream.toString()), whole)
  })

  t.test('a name that would change all objects changes none', async (t) => {
    assembled('data: {"choices":[{"index":0,"delta":{"__proto__":{"polluted":true}}}]}\n\n')
    t.notOk('polluted' in {})
  })
})

t.test('printed from parts', async (t) => {
  // What every translation prints: parts as chunks, parts as one body. See docs/api-rules.md, "Streams".
  const OPTIONS: PrinterOptions = { model: 'm', upstream: 'messages', created: 1, includeUsage: false }
  const USAGE = { prompt: 9, cached: 5, cacheWrite: 0, output: 4, reasoning: 3, serverToolCalls: 0 }
  const start: Part = { type: 'start', id: 'gen-1', model: 'upstream' }
  const text = (choice: number, text: string): Part => ({ type: 'text', choice, text })
  const finish = (choice: number, reason: 'stop' | 'length'): Part => ({ type: 'finish', choice, reason })
  const end: Part = { type: 'end' }

  function printed(parts: readonly Part[], options: Partial<typeof OPTIONS> = {}): string {
    const printer = new ChatCompletionsPrinter({ ...OPTIONS, ...options })
    for (const part of parts) printer.print(part)
    return printer.take()?.toString() ?? ''
  }

  const values = (sse: string) =>
    sse
      .split('\n\n')
      .slice(0, -1)
      .map((line) => (line === 'data: [DONE]' ? '[DONE]' : JSON.parse(line.slice('data: '.length))))

  function collected(parts: readonly Part[]) {
    const collector = new ChatCompletionCollector(OPTIONS)
    for (const part of parts) collector.add(part)
    return JSON.parse(collector.body().toString())
  }

  t.test('what one push brought leaves as one buffer, and only once', async (t) => {
    const printer = new ChatCompletionsPrinter(OPTIONS)
    t.equal(printer.take(), null)
    for (const part of [start, text(0, 'a'), text(0, 'b')]) printer.print(part)
    t.equal(values(String(printer.take())).length, 3)
    t.equal(printer.take(), null)
  })

  t.test('each choice has one role chunk and exactly one finish chunk', async (t) => {
    const parts = [
      start,
      text(0, 'a'),
      text(1, 'b'),
      finish(0, 'stop'),
      finish(0, 'stop'),
      text(2, 'c'),
      finish(1, 'length'),
      end,
    ]
    const chunks = values(printed(parts))
    t.equal(chunks.pop(), '[DONE]')
    for (const index of [0, 1, 2]) {
      const own = chunks.filter(({ choices }) => choices[0].index === index)
      t.equal(own.filter(({ choices }) => choices[0].delta.role === 'assistant').length, 1)
      t.equal(own[0].choices[0].delta.role, 'assistant', 'the role comes first')
      const reasons = own.map(({ choices }) => choices[0].finish_reason)
      t.same(reasons, [...reasons.slice(1).fill(null), index === 1 ? 'length' : 'stop'])
    }
    t.same(
      collected(parts).choices.map((choice: { message: { content: string }; finish_reason: string }) => [
        choice.message.content,
        choice.finish_reason,
      ]),
      [
        ['a', 'stop'],
        ['b', 'length'],
        ['c', 'stop'],
      ],
    )
  })

  t.test('the first chunk of a choice has the role alone: a text may never come', async (t) => {
    const call: Part = { type: 'tool_call', choice: 0, index: 0, id: 'c', name: 'f', signature: null }
    for (const parts of [[start, call], [call], [start, text(0, 'a')], [start, end]])
      t.strictSame(values(printed(parts))[0].choices[0].delta, { role: 'assistant' })
  })

  t.test('the usage of the last report, with its details', async (t) => {
    const details = {
      prompt_tokens: 9,
      completion_tokens: 4,
      total_tokens: 13,
      prompt_tokens_details: { cached_tokens: 5 },
      completion_tokens_details: { reasoning_tokens: 3 },
    }
    const reports: Part[] = [
      { type: 'usage', usage: { ...USAGE, output: 2 } },
      { type: 'usage', usage: USAGE },
    ]
    const chunks = values(printed([start, ...reports, end], { includeUsage: true }))
    t.strictSame(chunks.at(-2).usage, details)
    t.strictSame(chunks.at(-2).choices, [])
    t.strictSame(collected([start, ...reports, end]).usage, details)
  })

  t.test('the signature of the thought behind a call goes with the call', async (t) => {
    const call: Part = { type: 'tool_call', choice: 0, index: 0, id: 'c', name: 'f', signature: 'c2ln' }
    const args: Part = { type: 'tool_arguments', choice: 0, index: 0, json: '{}' }
    const extra_content = { google: { thought_signature: 'c2ln' } }
    const [, named] = values(printed([start, call, args, end]))
    t.strictSame(named.choices[0].delta.tool_calls[0].extra_content, extra_content)
    const { message, finish_reason } = collected([start, call, args, end]).choices[0]
    t.strictSame(message.tool_calls, [
      { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' }, extra_content },
    ])
    t.equal(finish_reason, 'tool_calls', 'also where the upstream gave no reason')
  })

  t.test(
    'reasoning that was not signed before the model went on belongs to no later signature',
    async (t) => {
      const reasoning = (text: string): Part => ({ type: 'reasoning', choice: 0, text })
      const call: Part = { type: 'tool_call', choice: 0, index: 0, id: 'c', name: 'f', signature: null }
      const signature: Part = { type: 'signature', choice: 0, signature: 'c2ln' }
      for (const between of [call, text(0, 'x')]) {
        const parts = [start, reasoning('lost'), between, reasoning('kept'), signature, end]
        const blocks = [{ type: 'thinking', thinking: 'kept', signature: 'c2ln' }]
        t.strictSame(collected(parts).choices[0].message.thinking_blocks, blocks)
        t.strictSame(values(printed(parts)).at(-3).choices[0].delta, { thinking_blocks: blocks })
      }
    },
  )

  t.test('after an error nothing is printed, whatever comes', async (t) => {
    const before = printed([start, text(0, 'a')])
    t.equal(
      printed([start, text(0, 'a'), { type: 'error', payload: '{}' }, text(0, 'b'), finish(0, 'stop'), end]),
      before,
    )
  })

  t.test('after the end nothing is printed', async (t) => {
    const before = printed([start, end])
    t.equal(printed([start, end, text(0, 'b'), end]), before)
  })

  t.test('an answer without an id gets one, the same in every chunk', async (t) => {
    for (const parts of [[text(0, 'a'), end], [{ ...start, id: '' }, text(0, 'a'), end], [end]]) {
      const chunks = values(printed(parts)).slice(0, -1)
      t.match(chunks[0].id, /^chatcmpl-[0-9A-Z]{26}$/)
      t.equal(new Set(chunks.map(({ id }) => id)).size, 1)
      t.match(collected(parts).id, /^chatcmpl-/)
    }
  })

  t.test('a text that would break a frame cannot', async (t) => {
    const hostile = '\n\ndata: [DONE]\n\n\r"}]}\u2028\ud83d\u0000'
    const chunks = values(printed([start, text(0, hostile), end]))
    t.equal(chunks[1].choices[0].delta.content, hostile)
    t.equal(collected([text(0, hostile)]).choices[0].message.content, hostile)
  })

  t.test('an event of any size below the limit is read whole; a longer one ends the answer', async (t) => {
    const found: number[] = []
    const reader = new EventReader((_name, data) => found.push(data.length))
    const piece = Buffer.alloc(1_048_576, 'x')
    const most = Math.floor(MAX_EVENT_CHARS / piece.length) - 1
    reader.push(Buffer.from('\ufeffdata: '))
    for (let i = 0; i < most; i++) reader.push(piece)
    reader.push(Buffer.from('\n\n'))
    t.same(found, [most * piece.length])

    const silent: PartReader = {
      isFinishing: false,
      read: () => undefined,
      report: null,
      usage: null,
      serviceTier: '',
    }
    const stream = new TranslatedStream(silent, new ChatCompletionsPrinter(OPTIONS))
    stream.push(Buffer.from('data: '))
    for (let i = 0; i < most + 3; i++) stream.push(piece)
    t.match(stream, { isComplete: false, firstError: Buffer })
    t.equal(stream.push(Buffer.from('\n\ndata: {}\n\n')), null)
  })
})

t.test('usage report', async (t) => {
  // A report of usage is believed when every count in it could be one. The rule, apart from the code, in zod.
  const count = z.number().nullish()
  const report = z.looseObject({
    prompt_tokens: z.number().min(0).max(1_000_000_000).nullish(),
    completion_tokens: z.number().min(0).max(1_000_000_000).nullish(),
    prompt_tokens_details: z.looseObject({ cached_tokens: count, cache_write_tokens: count }).nullish(),
    completion_tokens_details: z.looseObject({ reasoning_tokens: count }).nullish(),
    server_tool_use: z.looseObject({ web_search_requests: count }).nullish(),
  })

  const odd = fc.constantFrom<unknown>(null, '7', true, {}, [], Number.POSITIVE_INFINITY, 1e10, -1)
  const number = fc.oneof({ weight: 30, arbitrary: fc.oneof(fc.nat(50), fc.double({ min: 0, max: 9 })) }, odd)
  const details = (...names: string[]) =>
    fc.oneof(
      {
        weight: 20,
        arbitrary: fc.record(Object.fromEntries(names.map((name) => [name, number])), { requiredKeys: [] }),
      },
      odd,
    )
  const usage = fc.record(
    {
      prompt_tokens: number,
      completion_tokens: number,
      prompt_tokens_details: details('cached_tokens', 'cache_write_tokens', 'audio_tokens'),
      completion_tokens_details: details('reasoning_tokens'),
      server_tool_use: details('web_search_requests', 'web_fetch_requests'),
    },
    { requiredKeys: ['prompt_tokens', 'completion_tokens'] },
  )

  t.test('what the rule takes is read, and no part is more than the whole', async (t) => {
    let taken = 0
    everyRun(t, { seed: 3, numRuns: 1000 }, [usage], (value) => {
      const read = readUsage(value)
      const expected = report.safeParse(value)
      if (!expected.success) return read === null
      const { prompt_tokens, completion_tokens, prompt_tokens_details: prompt } = expected.data
      if (prompt_tokens == null && completion_tokens == null) return read === null
      taken++
      const whole = (n: number | null | undefined) => Math.floor(Math.max(0, n ?? 0))
      const cached = Math.min(whole(prompt_tokens), whole(prompt?.cached_tokens))
      const { extra, contradiction: _, ...counts } = read!
      t.ok((extra?.tools.web_search ?? 0) + (extra?.tools.url_context ?? 0) <= counts.serverToolCalls)
      t.strictSame(counts, {
        prompt: prompt_tokens == null ? null : whole(prompt_tokens),
        cached,
        cacheWrite: Math.min(whole(prompt_tokens) - cached, whole(prompt?.cache_write_tokens)),
        output: completion_tokens == null ? null : whole(completion_tokens),
        reasoning: Math.min(
          whole(completion_tokens),
          whole(expected.data.completion_tokens_details?.reasoning_tokens),
        ),
        serverToolCalls: Object.values(expected.data.server_tool_use ?? {})
          .filter((calls) => typeof calls === 'number' && calls >= 0 && calls <= 1_000_000_000)
          .reduce<number>((sum, calls) => sum + whole(calls as number), 0),
      })
      return true
    })
    t.ok(taken > 200, 'many were')
  })

  t.test('what is no object is no report', async (t) => {
    for (const value of [undefined, null, 1, 'x', [], [{ prompt_tokens: 1, completion_tokens: 1 }]])
      t.equal(readUsage(value), null)
  })
})

t.test('usage is taken out alone', async (t) => {
  // Of a last chunk without choices a client that did not ask for usage gets all but the usage, byte for byte.
  const USAGE = '{"prompt_tokens":3,"completion_tokens":4,"x":[",",{"usage":1}]}'
  const HEAD = '"id":"c-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[]'
  const WORD = 'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
  const DONE = 'data: [DONE]\n\n'

  /** The chunk as the upstream sends it, and what of it the client gets. */
  const ROWS: Readonly<Record<string, readonly [sent: string, got: string]>> = {
    'usage in the middle': [
      `data: {${HEAD}, "usage" : ${USAGE} , "citations":["https://a", "\\u00e4"] }\n\n`,
      `data: {${HEAD},  "citations":["https://a", "\\u00e4"] }\n\n`,
    ],
    'usage at the end': [
      `data:{${HEAD},"citations":["a"],"usage":${USAGE}}\r\n\r\n`,
      `data:{${HEAD},"citations":["a"]}\r\n\r\n`,
    ],
    'usage in front': [`data: {"usage":${USAGE},"x_info":{"t":1}}\n\n`, 'data: {"x_info":{"t":1}}\n\n'],
    'usage twice': [
      `data: {"usage":${USAGE},"a":1,"choices":[],"usage":${USAGE}}\n\n`,
      'data: {"a":1,"choices":[]}\n\n',
    ],
    'other lines around it': [
      `: note\nid: 7\ndata: {${HEAD},"usage":${USAGE},"citations":["a"]}\n\n`,
      `: note\nid: 7\ndata: {${HEAD},"citations":["a"]}\n\n`,
    ],
    'a payload of several lines': [
      `id: 7\r\ndata: {${HEAD},\r\ndata: "usage":\r\ndata: ${USAGE},\r\ndata: "citations":["ä"]}\r\n\r\n`,
      `id: 7\ndata: {${HEAD},  "citations":["ä"]}\n\n`,
    ],
    'nothing but usage': [`data: {${HEAD},"usage":${USAGE}}\n\n`, ''],
    'nothing that says something': [
      `data: {${HEAD},"system_fingerprint":"fp","service_tier":"auto","error":null,"citations":[],"usage":${USAGE}}\n\n`,
      '',
    ],
  }

  t.test('a client that did not ask for usage', async (t) => {
    for (const [what, [sent, got]] of Object.entries(ROWS))
      for (const cuts of [[], [WORD.length + 20], [WORD.length + sent.length - 3]]) {
        const meter = new ChatCompletionsMeter({ withholdUsage: true })
        const { output, said } = runInPieces(meter, Buffer.from(WORD + sent + DONE), cuts)
        t.equal(output.toString(), WORD + got + DONE, `${what}, cut at ${cuts}`)
        t.match(said, { usage: { prompt: 3, output: 4 }, isUsageWhole: true }, what)
      }
  })

  t.test('also where the stream ends without its last empty line', async (t) => {
    const meter = new ChatCompletionsMeter({ withholdUsage: true })
    const last = `data: {"choices":[],"usage":${USAGE},"citations":["a"]}`
    const { output } = runInPieces(meter, Buffer.from(WORD + last), [])
    t.equal(output.toString(), `${WORD}data: {"choices":[],"citations":["a"]}`)
  })

  t.test('a client that asked for it', async (t) => {
    for (const [what, [sent]] of Object.entries(ROWS)) {
      const meter = new ChatCompletionsMeter({ withholdUsage: false })
      const { output } = runInPieces(meter, Buffer.from(WORD + sent + DONE), [])
      t.equal(output.toString(), WORD + sent + DONE, what)
    }
  })
})
