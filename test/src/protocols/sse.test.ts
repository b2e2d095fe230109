/** Event streams, cut anywhere. */
import fc from 'fast-check'
import t from 'tap'
import { withHeaderUsage } from '../../../pipelines/chat/forward/answers.ts'
import { readFacts } from '../../../src/protocols/answer/place-read.ts'
import { withEventStreamFraming } from '../../../src/protocols/aws/bedrock-stream.ts'
import { EventStreamReader } from '../../../src/protocols/aws/event-stream.ts'
import { ChatCompletionsMeter } from '../../../src/protocols/chat-completions/meter.ts'
import { CHUNK } from '../../../src/protocols/chat-completions/places.ts'
import { WholeResponse } from '../../../src/protocols/chat-completions/whole.ts'
import type { AnswerStream } from '../../../src/protocols/dialect.ts'
import { GenerateContentMeter } from '../../../src/protocols/generate-content/meter.ts'
import { MessagesMeter } from '../../../src/protocols/messages/meter.ts'
import { DIALECTS, protocolAdapter } from '../../../src/protocols/registry.ts'
import { ResponsesMeter } from '../../../src/protocols/responses/meter.ts'
import { addPattern, countWords, isPatternAt, openView } from '../../../src/protocols/sse/byte-pattern.ts'
import { eventData } from '../../../src/protocols/sse/framer.ts'
import { RepeatedEvent } from '../../../src/protocols/sse/repeated-event.ts'
import { chunk, exception, message } from '../../support/event-stream.ts'
import { everyRun } from '../../support/every-run.ts'
import { weighed } from './chat-completions/reference.ts'
import { translatedStream as fromGenerateContent } from './generate-content/streams.ts'
import { translatedStream as fromMessages, runInPieces, translatedStream } from './messages/streams.ts'

t.test('streams with marks and any line ends', async (t) => {
  // Event streams that begin with a byte order mark, and lines that end with LF, CRLF or CR: read alike in every
  // protocol, passed as they came, wherever they are cut.
  const MARK = '\ufeff'
  const STYLES = { LF: '\n', CRLF: '\r\n', CR: '\r' }

  /** Events as lines, each of which ends an event where it is empty. */
  const chat = [
    ': a comment',
    '',
    'event: chunk',
    'data: {"choices":[{"index":0,"delta":{"content":"Grüße"}}]}',
    '',
    'data: {"choices":[{"index":0,"delta":{"content":" an"}}]}',
    '',
    'data: {"choices":[{"index":0,"delta":{"content":" alle"}}]}',
    '',
    'data: {"choices":[{"index":0,"delta":{},',
    'data: "finish_reason":"stop"}]}',
    '',
  ]
  const chatUsage = ['data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}', '']
  const chatDone = ['data: [DONE]', '']
  const messages = [
    'event: message_start',
    'data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":9}}}',
    '',
    'event: content_block_delta',
    'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüße"}}',
    '',
    'event: content_block_delta',
    'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" an alle"}}',
    '',
    'event: message_delta',
    'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},',
    'data: "usage":{"output_tokens":4}}',
    '',
    'event: message_stop',
    'data: {"type":"message_stop"}',
    '',
  ]
  const responses = [
    'event: response.output_text.delta',
    'data: {"type":"response.output_text.delta","delta":"Grüße"}',
    '',
    'event: response.output_text.delta',
    'data: {"type":"response.output_text.delta","delta":" an alle"}',
    '',
    'event: response.completed',
    'data: {"type":"response.completed",',
    'data: "response":{"usage":{"input_tokens":9,"output_tokens":4}}}',
    '',
  ]
  const generateContent = [
    'id: 1',
    'data: {"candidates":[{"content":{"parts":[{"text":"Grüße"}]}}]}',
    '',
    'data: {"candidates":[{"content":{"parts":[{"text":" an alle"}]},"finishReason":"STOP"}],',
    'data: "usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4}}',
    '',
  ]

  interface Way {
    readonly open: () => AnswerStream
    readonly lines: readonly string[]
    /** What the client gets of them; null where it gets chunks of ours. */
    readonly passed: readonly string[] | null
  }
  const WAYS: Readonly<Record<string, Way>> = {
    'chat-completions, usage withheld': {
      open: () => new ChatCompletionsMeter({ withholdUsage: true }),
      lines: [...chat, ...chatUsage, ...chatDone],
      passed: [...chat, ...chatDone],
    },
    'chat-completions, usage wanted': {
      open: () => new ChatCompletionsMeter({ withholdUsage: false }),
      lines: [...chat, ...chatUsage, ...chatDone],
      passed: [...chat, ...chatUsage, ...chatDone],
    },
    messages: { open: () => new MessagesMeter(), lines: messages, passed: messages },
    'messages, translated': { open: fromMessages, lines: messages, passed: null },
    responses: { open: () => new ResponsesMeter(), lines: responses, passed: responses },
    'generate-content': {
      open: () => new GenerateContentMeter('sse'),
      lines: generateContent,
      passed: generateContent,
    },
    'generate-content, translated': { open: fromGenerateContent, lines: generateContent, passed: null },
  }

  const textOf = (lines: readonly string[], end: string) => lines.map((line) => line + end).join('')
  /** Ids and times of our own chunks differ from answer to answer. */
  const withoutIds = (output: Buffer) => output.toString().replaceAll(/"id":"[^"]*"/g, '')

  for (const [name, { open, lines, passed }] of Object.entries(WAYS))
    t.test(name, async (t) => {
      const plain = withoutIds(runInPieces(open(), Buffer.from(textOf(lines, '\n')), []).output)
      for (const [style, end] of Object.entries(STYLES))
        for (const mark of ['', MARK]) {
          const stream = Buffer.from(mark + textOf(lines, end))
          const expected = passed === null ? plain : mark + textOf(passed, end)
          const everyByte = Array.from({ length: stream.length - 1 }, (_, at) => at + 1)
          for (const cuts of [[], everyByte, ...everyByte.map((at) => [at])]) {
            const { output, said } = runInPieces(open(), stream, cuts)
            const { usage, characters, isUsageWhole, isComplete } = said
            const found = [usage?.prompt, usage?.output, characters, isUsageWhole, isComplete].join()
            const got = passed === null ? withoutIds(output) : output.toString()
            if (found === `9,4,${weighed('Grüße an alle')},true,true` && got === expected) continue
            t.equal(
              found,
              `9,4,${weighed('Grüße an alle')},true,true`,
              `${style}, mark '${mark}', cut at ${cuts}`,
            )
            t.equal(got, expected, `${style}, mark '${mark}', cut at ${cuts}`)
            return
          }
          t.pass(`${style}, ${mark === '' ? 'without' : 'with'} a mark`)
        }
    })
})

t.test('repeated event known without reading', async (t) => {
  const event = (text: string, more = '', behind = '') =>
    Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"${text}"}${more}}]${behind}}\n\n`)

  function remember(repeated: RepeatedEvent, bytes: Buffer): void {
    const data = eventData(bytes, 0, bytes.length)!
    repeated.remember(bytes, 0, bytes.length, data, readFacts(data, CHUNK), CHUNK)
  }

  const count = (repeated: RepeatedEvent, bytes: Buffer) => repeated.countRepeated(bytes, 0, bytes.length)

  function remembering(text: string): RepeatedEvent {
    const repeated = new RepeatedEvent()
    remember(repeated, event(text))
    return repeated
  }

  t.test('an event that differs in its text alone is known, its characters weighed by script', async (t) => {
    const repeated = remembering('hello')
    for (const [text, characters] of [
      ['', 0],
      ['x', 1],
      ['你好😀', 4 + 4 + 5.5],
      ['a much longer text', 18],
      ['tab\\tand \\ud83d\\ude00', 8 + 5.5],
    ] as const) {
      const bytes = event(text)
      t.equal(repeated.countRepeated(bytes, 0, bytes.length), characters, text)
    }
  })

  t.test('an event that differs elsewhere, or has a quote in its text, is not', async (t) => {
    const repeated = remembering('hello')
    const others = [
      event('x', ',"finish_reason":"stop"'),
      event('two\nlines'),
      event('x","usage":{"prompt_tokens":1},"content":"y'),
      Buffer.from('data: [DONE]\n\n'),
      Buffer.from('\n'),
    ]
    for (const bytes of others) t.equal(repeated.countRepeated(bytes, 0, bytes.length), -1, bytes.toString())
  })

  t.test('two remembered halves that overlap in a short event do not make one', async (t) => {
    const repeated = new RepeatedEvent()
    remember(repeated, Buffer.from('data: {"choices":[{"content":""}]}\n\n'))
    t.equal(count(repeated, Buffer.from('data: {"choices":[{"content":"}]}\n\n')), -1)
  })

  t.test('values that no meter reads may differ once they have differed', async (t) => {
    const padded = (id: string, text: string, padding: string, more = '') =>
      event(text, more, `,"id":${id},"obfuscation":"${padding}"`)
    const repeated = new RepeatedEvent()
    remember(repeated, padded('"a"', 'x', 'R'))
    for (const other of [padded('"a"', 'y', 'Random'), padded('17', 'y', '')]) {
      t.equal(count(repeated, other), -1, 'not before')
      remember(repeated, other)
    }
    for (const [id, padding] of [
      ['"msg_1"', 'padding'],
      ['""', ''],
      ['-1.5', 'a \\"quote\\"'],
      ['null', '{}[]'],
      ['987654321', 'ü'],
    ] as const)
      t.equal(count(repeated, padded(id, '你好', padding)), 8, `${id} ${padding}`)
    const others = [
      padded('{"content":"more"}', 'x', ''),
      padded('["more"]', 'x', ''),
      padded('1', 'x', '', ',"finish_reason":"stop"'),
      padded('1,"usage":{"prompt_tokens":1}', 'x', ''),
      padded('"1","usage":{"prompt_tokens":1}', 'x', ''),
      padded('1', 'x', '","usage":{"prompt_tokens":1},"y":"'),
      padded('1', 'x', 'line\n'),
      padded('1', 'x', '\\').subarray(0, -5),
      Buffer.concat([padded('1', 'x', ''), event('y')]),
    ]
    for (const bytes of others) t.equal(count(repeated, bytes), -1, bytes.toString())
  })

  t.test('lists and objects that no meter reads may differ too', async (t) => {
    const printed = (logprobs: string) => event('x', `,"logprobs":${logprobs}`)
    const repeated = new RepeatedEvent()
    remember(repeated, printed('{"content":[{"token":"x"}]}'))
    t.equal(count(repeated, printed('{"content":[{"token":"longer"}]}')), -1)
    remember(repeated, printed('{"content":[{"token":"longer"}]}'))
    for (const logprobs of ['null', '[]', '{"content":[{"token":"}","bytes":[1,2]},{}],"refusal":null}'])
      t.equal(count(repeated, printed(logprobs)), 1, logprobs)
    for (const logprobs of ['{', '{"content":[1]}}', '{"content":"}', '[1],"usage":{}'])
      t.equal(count(repeated, printed(logprobs)), -1, logprobs)
  })

  t.test('events with random values are counted as by their reader', async (t) => {
    const value = fc.oneof(
      { weight: 20, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }) },
      { weight: 10, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) },
      { weight: 2, arbitrary: fc.constantFrom(null, true, [], {}) },
      fc.record({ content: fc.string({ maxLength: 4 }) }),
    )
    const chunk = fc.record({
      id: value,
      text: fc.string({ unit: 'grapheme', maxLength: 12 }),
      index: value,
      role: value,
      logprobs: value,
      padding: value,
    })
    everyRun(
      t,
      { seed: 20_261_128, numRuns: 300 },
      [fc.array(chunk, { minLength: 12, maxLength: 40 })],
      (chunks) => {
        const meter = new ChatCompletionsMeter({ withholdUsage: false })
        let characters = 0
        return chunks.every(({ id, text, index, role, logprobs, padding }) => {
          const data = JSON.stringify({
            id,
            model: 'm',
            choices: [{ index, delta: { role, content: text }, logprobs }],
            padding,
          })
          meter.push(Buffer.from(`data: ${data}\n\n`))
          characters += readFacts(Buffer.from(data), CHUNK).characters
          return meter.characters === characters
        })
      },
    )
  })

  t.test('a stream whose events differ elsewhere each time is metered all the same', async (t) => {
    const meter = new ChatCompletionsMeter({ withholdUsage: true })
    for (let i = 0; i < 40; i++) meter.push(event('four', `,"obfuscation":"${'x'.repeat(i)}"`))
    for (let i = 0; i < 40; i++) meter.push(event('four'))
    t.equal(meter.characters, 4 * 80)
  })

  t.test('a piece that is one event is passed on as it is, whatever came in the piece before', async (t) => {
    for (const withholdUsage of [true, false]) {
      const meter = new ChatCompletionsMeter({ withholdUsage })
      const sent: string[] = []
      const stream = Buffer.concat([event('one'), event('two'), event('three'), event('four'), event('five')])
      // Cut inside an event, at its end, before its last line end, and between events.
      const { length } = event('one')
      for (const [from, to] of [
        [0, length],
        [length, 2 * length - 1],
        [2 * length - 1, 2 * length],
        [2 * length, 3 * length],
        [3 * length, stream.length],
      ])
        sent.push(meter.push(stream.subarray(from, to))?.toString() ?? '')
      t.equal(sent.join('') + (meter.end()?.toString() ?? ''), stream.toString())
      t.equal(meter.characters, 'onetwothreefourfive'.length)
    }
  })
})

t.test('byte pattern agrees with equals', async (t) => {
  const RUNS = 2_000
  const SEED = 20_261_121

  /** Whether `pattern` is found at `place` of `bytes`, its words standing behind those of others. */
  function isFound(pattern: Buffer, bytes: Buffer, place = 0): boolean {
    const words: number[] = []
    addPattern(words, Buffer.from('what stands in front'))
    const first = words.length
    addPattern(words, pattern)
    if (words.length !== first + countWords(pattern.length))
      throw new Error('a pattern takes other words than it says')
    return isPatternAt(words, first, pattern.length, openView(bytes), bytes.byteOffset + place)
  }

  /** Text has no zeros and nothing above DEL: what else a word can be is never said to be equal. */
  const text = fc.uint8Array({ min: 1, max: 0x7e, maxLength: 40 })

  t.test('a pattern is where its bytes are, and nowhere else', async (t) => {
    const around = fc.record({
      pattern: text,
      before: text,
      after: text,
      changed: fc.option(fc.nat(), { freq: 2 }),
      by: fc.integer({ min: 1, max: 0x7f }),
    })
    everyRun(t, { seed: SEED, numRuns: RUNS }, [around], ({ pattern, before, after, changed, by }) => {
      const bytes = Buffer.concat([before, pattern, after])
      const isChanged = changed !== null && pattern.length > 0
      if (isChanged) bytes[before.length + (changed % pattern.length)]! ^= by
      return isFound(Buffer.from(pattern), bytes, before.length) === !isChanged
    })
  })

  t.test('words that numbers cannot tell apart, or that are none, are never found', async (t) => {
    for (const hex of ['0000000000000000', '0000000000000080', 'ffffffffffffffff', '010000000000f07f']) {
      const bytes = Buffer.from(hex, 'hex')
      t.notOk(isFound(bytes, bytes), hex)
    }
  })

  t.test('pieces of different buffers are distinguished', async (t) => {
    const pattern = Buffer.from('in its own memory')
    const one = Buffer.from(new Uint8Array(Buffer.from('in its own memory')).buffer)
    const other = Buffer.from(new Uint8Array(Buffer.from('in another memory')).buffer)
    for (const [bytes, isSame] of [
      [one, true],
      [other, false],
      [one, true],
    ] as const)
      t.equal(isFound(pattern, bytes), isSame)
  })
})

t.test('event streams are read in any pieces', async (t) => {
  const CALL = DIALECTS.messages.read({
    query: '',
    body: Buffer.from(
      '{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}',
    ),
  })
  const newStream = () => withEventStreamFraming(protocolAdapter('messages', 'messages').openStream(CALL))
  const DELTA = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Grüße' } }

  t.test('a message without headers and payload has the published checksums', async (t) => {
    // From the format's own examples: 16 bytes, of which both checksums are known.
    const empty = Buffer.from('00000010000000000 5c248eb7d98c8ff'.replace(' ', ''), 'hex')
    t.same(new EventStreamReader().push(empty), [{ headers: {}, payload: Buffer.alloc(0) }])
    t.same(message({}, ''), empty)
  })

  t.test('messages in pieces of any length are the same', async (t) => {
    const all = Buffer.concat([
      message({ a: 'ä', b: '' }, 'one'),
      message({}, 'x'.repeat(3000)),
      chunk(DELTA),
    ])
    const whole = new EventStreamReader().push(all)
    t.equal(whole.length, 3)
    t.same(whole[0], { headers: { a: 'ä', b: '' }, payload: Buffer.from('one') })
    for (const size of [1, 2, 3, 7, 64, 1000]) {
      const reader = new EventStreamReader()
      const read = []
      for (let at = 0; at < all.length; at += size) read.push(...reader.push(all.subarray(at, at + size)))
      t.same(read, whole, `${size}`)
    }
  })

  t.test('one wrong bit anywhere is found', async (t) => {
    const sound = message({ name: 'value' }, 'payload')
    for (let at = 0; at < sound.length; at++) {
      const damaged = Buffer.from(sound)
      damaged[at]! ^= 1
      t.throws(() => new EventStreamReader().push(damaged), { name: 'EventStreamError' }, `byte ${at}`)
    }
  })

  t.test('a damaged stream is an error of the answer, and nothing after it is read', async (t) => {
    const stream = newStream()
    t.match(String(stream.push(chunk(DELTA))), /^event: content_block_delta\ndata: .*Grüße.*\n\n$/)
    const damaged = chunk(DELTA)
    damaged[damaged.length - 1]! ^= 1
    t.match(String(stream.push(damaged)), /^event: error\n.*checksum/s)
    t.equal(stream.push(chunk(DELTA)), null)
    t.not(stream.laterError, null)
  })

  t.test('an exception is an error in the words of the protocol', async (t) => {
    const stream = newStream()
    stream.push(exception('throttlingException', 'Too many tokens'))
    t.match(String(stream.firstError), /"rate_limit_error".*Too many tokens/)
  })

  t.test('metrics of the platform are not shown', async (t) => {
    const stop = { type: 'message_stop', 'amazon-bedrock-invocationMetrics': { inputTokenCount: 8 } }
    t.equal(String(newStream().push(chunk(stop))), 'event: message_stop\ndata: {"type":"message_stop"}\n\n')
  })

  t.test('metrics of the platform are metered, native and translated', async (t) => {
    const METRICS = 'amazon-bedrock-invocationMetrics'
    const events = [
      { type: 'message_start', message: { id: 'm', usage: { input_tokens: 1000, output_tokens: 1 } } },
      DELTA,
      { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
      { type: 'message_stop', [METRICS]: { inputTokenCount: 1000, outputTokenCount: 300 } },
    ]
    const all = Buffer.concat(events.map(chunk))
    const ways = { native: newStream, translated: () => withEventStreamFraming(translatedStream()) }
    for (const [way, open] of Object.entries(ways))
      for (const size of [1, 100, all.length]) {
        const stream = open()
        const out: string[] = []
        for (let at = 0; at < all.length; at += size)
          out.push(String(stream.push(all.subarray(at, at + size)) ?? ''))
        out.push(String(stream.end() ?? ''))
        t.match(stream, { usage: { prompt: 1000, output: 300 }, isUsageWhole: true, isComplete: true }, way)
        t.same(stream.reported, { inputTokenCount: 1000, outputTokenCount: 300 })
        t.notMatch(out.join(''), METRICS, way)
        const shown = events.map(({ [METRICS as 'type']: _, ...rest }) => rest as object)
        const text = shown.map(
          (event) => `event: ${(event as { type: string }).type}\ndata: ${JSON.stringify(event)}\n\n`,
        )
        if (way === 'native') t.equal(out.join(''), text.join(''), `in pieces of ${size}`)
        else t.match(out.join(''), /"completion_tokens":300,/)
      }
  })

  t.test('headers report the usage where the body has none', async (t) => {
    const none = { usage: null, characters: 8, charactersSinceUsage: 8, isUsageWhole: false }
    const counts: Record<string, string> = {
      'x-amzn-bedrock-input-token-count': '20',
      'x-amzn-bedrock-output-token-count': '5',
      'x-amzn-bedrock-cache-read-input-token-count': '100',
      'x-amzn-bedrock-cache-write-input-token-count': '30',
    }
    t.match(withHeaderUsage(none, 'bedrock', { get: (name) => counts[name] }), {
      usage: { prompt: 150, cached: 100, cacheWrite: 30, output: 5 },
      isUsageWhole: true,
    })
    const whole = new WholeResponse(Buffer.from('{"model":"m-1","choices":[{"message":{"content":"four"}}]}'))
    t.match(
      withHeaderUsage(whole, 'bedrock', { get: (name) => counts[name] }),
      { characters: 4, charactersSinceUsage: 0, model: 'm-1' },
      'beside what is counted when it is read',
    )
    t.equal(withHeaderUsage(none, 'bedrock', { get: () => undefined }), none)
    t.equal(withHeaderUsage(none, 'bedrock', { get: () => '-1' }), none)
  })
})
