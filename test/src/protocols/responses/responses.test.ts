/** Requests and answers of responses. */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { findNameFault } from '../../../../src/core/json/names.ts'
import { MAX_JSON_LEVELS, scanJson } from '../../../../src/core/json/scanner/tape.ts'
import { readFacts } from '../../../../src/protocols/answer/place-read.ts'
import type { AnswerFacts } from '../../../../src/protocols/answer/places.ts'
import type { EncodeOptions } from '../../../../src/protocols/dialect.ts'
import { RESPONSES_NAMES } from '../../../../src/protocols/request/known-names.ts'
import { responsesDialect, responsesNative } from '../../../../src/protocols/responses/dialect.ts'
import { ResponsesMeter } from '../../../../src/protocols/responses/meter.ts'
import { EVENT } from '../../../../src/protocols/responses/places.ts'
import { eventData, MAX_READ_EVENT_BYTES } from '../../../../src/protocols/sse/framer.ts'
import { LongEvents } from '../../../../src/protocols/sse/long-events.ts'
import { RepeatedEvent } from '../../../../src/protocols/sse/repeated-event.ts'
import { Random } from '../../../simulation/random.ts'
import { ANY_CHARACTER } from '../../../support/any-character.ts'
import { everyRun } from '../../../support/every-run.ts'
import { encodeOptions } from '../encode-options.ts'
import { checkEverySplit } from '../every-split.ts'
import { RESPONSES_STREAMS, referenceOf, runInPieces } from './streams.ts'

t.test('request read and forwarded', async (t) => {
  // What is read of a request, and what of it changes on its way. See docs/api-rules.md, "Responses" and "Attempts".
  const SEED = 61
  const RUNS = 500
  const INPUT = '"input":[{"role":"user","content":"hi"}]'

  const read = (body: string | Buffer) => responsesDialect.read({ query: '', body: Buffer.from(body) })
  const wire = (body: string, options: Partial<EncodeOptions> = {}): string => {
    const { body: out, dropped } = responsesNative.encodeRequest(read(body), encodeOptions(options))
    deepStrictEqual(dropped, [])
    return out.toString('utf8')
  }

  t.test('what the pipeline has to know', async (t) => {
    const instructions = '"instructions" : "Be brief. ✓\\n"'
    const call = read(`{"model":"m", "stream":true, ${instructions} ,"max_output_tokens":77,${INPUT}}`)
    t.match(call, { model: 'm', stream: true, outputLimit: 77, choices: 1, builtInTools: { length: 0 } })
    const input = '[{"role":"user","content":"hi"}]'
    t.equal(
      call.promptBytes,
      Buffer.byteLength('"Be brief. ✓\\n"') + input.length,
      'input and instructions as sent',
    )
    t.match(read('{"model":"m","input":"hi"}'), { stream: false, outputLimit: null, promptBytes: 4 })
    t.match(read(`{"model":"m",${INPUT},"stream":null,"instructions":null,"max_output_tokens":null}`), {
      stream: false,
      outputLimit: null,
    })
  })

  t.test('built-in tools are known by all their names, function tools are none', async (t) => {
    const toolsOf = (...types: string[]) =>
      read(`{"model":"m",${INPUT},"tools":${JSON.stringify(types.map((type) => ({ type, name: 'f' })))}}`)
        .builtInTools
    t.same(toolsOf('function', 'custom'), [])
    t.same(toolsOf('web_search'), ['web_search'])
    t.same(toolsOf('web_search_preview'), ['web_search'])
    t.same(toolsOf('web_search_preview_2025_03_11', 'web_search'), ['web_search'])
    t.same(toolsOf('web_search_2025_08_26', 'image_generation'), ['web_search', 'image_generation'])
    t.throws(() => toolsOf('web_searcher'), { code: 'tool_not_supported' })
  })

  t.test('the model is renamed and the limit raised; every other byte stays', async (t) => {
    t.equal(
      wire(`{ "model" : "ours",\r\n ${INPUT},"stream":true, "temperature":1.0e+0, "unknown": {"a":[1 ,2]} }`),
      `{"max_output_tokens":4096, "model" : "theirs",\r\n ${INPUT},"stream":true, "temperature":1.0e+0, "unknown": {"a":[1 ,2]} }`,
    )
    const same = `\t{"model":"theirs","stream":true,${INPUT},"max_output_tokens":7}\n`
    t.equal(wire(same), same, 'nothing to change is nothing changed')
    t.equal(
      wire(`{"max_output_tokens":null,"model":"theirs",${INPUT}}`),
      `{"max_output_tokens":4096,"model":"theirs",${INPUT}}`,
      'null stands for absent',
    )
    const open = `{"model":"theirs",${INPUT}}`
    t.equal(wire(open, { outputCeiling: null }), open, 'a model without a ceiling has none to raise to')
    t.equal(
      wire(`{"m\\u006fdel":"ours",${INPUT},"max\\u005foutput_tokens":5}`),
      `{"m\\u006fdel":"theirs",${INPUT},"max\\u005foutput_tokens":5}`,
      'names written with escapes are the names they stand for',
    )
  })

  t.test('items of earlier turns go on as they came', async (t) => {
    const items = [
      { role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
      {
        role: 'user',
        content: [{ type: 'input_image', image_url: 'https://a.example/x.png', detail: 'low' }],
      },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'yes' }], id: 'msg_1' },
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: '1' },
      { type: 'image_generation_call', id: 'ig_1', result: 'aGk=' },
    ]
    const body = JSON.stringify({
      model: 'theirs',
      input: items,
      max_output_tokens: 1,
      store: true,
      include: [],
    })
    t.equal(wire(body), body)
  })

  t.test('a body that is no request is refused with a message that names the field', async (t) => {
    const refused = (body: string | Buffer, message: RegExp) =>
      t.throws(() => read(body), { code: 'invalid_request', message }, String(body).slice(0, 80))
    const withField = (field: string) => `{"model":"m",${INPUT},${field}}`
    refused('', /empty/)
    refused('nonsense', /not valid JSON/)
    refused('[]', /request body/)
    refused(`{${INPUT}}`, /'model'/)
    refused(`{"model":"",${INPUT}}`, /'model'/)
    refused('{"model":"m"}', /'input'/)
    refused('{"model":"m","input":[]}', /'input'/)
    refused('{"model":"m","input":""}', /'input'/)
    refused('{"model":"m","input":[{"content":"hi"}]}', /'input\[0\]'.*neither a role nor a type/)
    refused('{"model":"m","input":[{"role":"user"}]}', /'input\[0\]'.*role and content/)
    refused('{"model":"m","input":[{"type":"message","content":"x"}]}', /'input\[0\]'.*role and content/)
    refused('{"model":"m","input":[{"role":"robot","content":"hi"}]}', /'input\[0\]\.role'/)
    refused(
      '{"model":"m","input":[{"role":"user","content":[{"text":"hi"}]}]}',
      /'input\[0\]\.content\[0\]\.type'/,
    )
    refused(withField('"instructions":7'), /'instructions'/)
    refused(withField('"stream":"yes"'), /'stream'/)
    refused(withField('"max_output_tokens":0'), /'max_output_tokens'/)
    refused(withField('"max_output_tokens":1.5'), /'max_output_tokens'/)
    refused(withField('"reasoning":"high"'), /'reasoning'/)
    refused(withField('"reasoning":{"effort":"extreme"}'), /'reasoning\.effort'/)
    refused(withField('"temperature":"hot"'), /'temperature'/)
    refused(withField('"top_p":[]'), /'top_p'/)
    refused(withField('"frequency_penalty":"x"'), /'frequency_penalty'/)
    refused(withField('"presence_penalty":true'), /'presence_penalty'/)
    refused(withField('"tools":[{"name":"f"}]'), /'tools\[0\]\.type'/)
    refused(withField('"tools":[{"type":"function"}]'), /'tools\[0\]'.*needs a name/)
    refused(withField('"tools":[{"type":"function","name":"f","parameters":[]}]'), /'tools\[0\]\.parameters'/)
    refused(withField('"tool_choice":5'), /'tool_choice'/)
    refused(withField('"parallel_tool_calls":"no"'), /'parallel_tool_calls'/)
    refused(withField('"model":"dear"'), /'model'.*more than once/)
  })

  t.test('what is kept at an upstream is read, for the gateway to find its channel', async (t) => {
    const stateOf = (...fields: string[]) => read(`{${['"model":"m"', INPUT, ...fields].join()}}`).state
    const none = { previous: null, conversation: null, items: [], isStored: true, isBackground: false }
    t.same(stateOf('"previous_response_id":null,"conversation":null,"background":false'), none)
    t.match(stateOf('"conversation":"conv_1"'), { conversation: 'conv_1' })
    t.match(stateOf('"conversation":{"id":"conv_1"}'), { conversation: 'conv_1' })
    t.match(stateOf('"background":true,"store":false'), { isBackground: true, isStored: false })
    const callback = '"callback_url":"https://example.com/"'
    t.match(stateOf('"background":true', callback), { callbackUrl: 'https://example.com/' })
    for (const wrong of ['"conversation":{}', '"conversation":7', '"background":"yes"', '"callback_url":"x"'])
      t.throws(() => stateOf(wrong), { code: 'invalid_request' })
  })

  t.test("an address for the end is not passed on, and an id is the upstream's", async (t) => {
    const call = read(
      `{"model":"m",${INPUT},"callback_url":"https://example.com/","previous_response_id":"resp_OURS"}`,
    )
    const state = { ...call.state!, upstreamPrevious: 'resp_theirs' }
    const { body } = responsesNative.encodeRequest({ ...call, state }, encodeOptions())
    t.match(JSON.parse(body.toString()), { previous_response_id: 'resp_theirs' })
    t.notMatch(body.toString(), /callback_url/)
  })

  t.test('whatever else the request holds, it goes on as it came', async (t) => {
    const other = fc.dictionary(
      fc.string({ unit: ANY_CHARACTER, maxLength: 8 }).map((name) => `x-${name}`),
      fc.jsonValue({ stringUnit: ANY_CHARACTER, maxDepth: 3 }),
      { maxKeys: 4, noNullPrototype: true },
    )
    const limit = fc.constantFrom(undefined, null, 17)
    const text = fc.string({ unit: ANY_CHARACTER, minLength: 1, maxLength: 20 })
    everyRun(
      t,
      { seed: SEED, numRuns: RUNS },
      [other, limit, text, fc.constantFrom(undefined, 1, '\t')],
      (more, limit, input, indent) => {
        const before = { ...more, model: 'ours', max_output_tokens: limit, input }
        const body = JSON.stringify(before, null, indent)
        fc.pre(
          scanJson(
            Buffer.from(body),
            MAX_JSON_LEVELS,
            null,
            (tape) => findNameFault(tape, RESPONSES_NAMES) === null,
          ) ?? false,
        )
        const out = wire(body)
        deepStrictEqual(JSON.parse(out), {
          ...JSON.parse(JSON.stringify(before)),
          model: 'theirs',
          max_output_tokens: limit ?? 4096,
        })
      },
    )
  })
})

t.test('answer read', async (t) => {
  // What a meter finds in answers of the responses protocol, held against JSON.parse; on garbage it ends without an error.
  const SEED = 62
  const RUNS = 600

  const text = fc.oneof(
    fc.string({ unit: ANY_CHARACTER, maxLength: 12 }),
    fc.constantFrom('"', '\\', '\\"', '","usage":{', '😀', '"type":"response.completed"', '\n\ndata: '),
  )
  const type = fc.constantFrom(
    'response.output_text.delta',
    'response.reasoning_summary_text.delta',
    'response.function_call_arguments.delta',
    'response.output_text.done',
    'response.queued',
  )
  const count = fc.nat({ max: 100_000 })
  const tokens = fc.record({ input_tokens: count, output_tokens: count }).map((tokens) => ({
    ...tokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  }))
  const any = fc.jsonValue({ stringUnit: ANY_CHARACTER, maxDepth: 3 })
  const delta = fc.record({
    type,
    delta: text,
    obfuscation: text,
    item_id: fc.constantFrom('a', 'b'),
    x: any,
  })
  const done = fc.record({
    type: fc.constant('response.output_item.done'),
    item: fc.record(
      {
        ...{ id: text, name: fc.constantFrom('x_search', 'mine') },
        type: fc.constantFrom('web_search_call', 'message', 'file_search_call', 'custom_tool_call'),
        action: fc.option(fc.record({ query: text, type: fc.constantFrom('search', 'open_page'), x: any })),
      },
      { requiredKeys: ['type'] },
    ),
  })
  const ending = fc.record({
    type: fc.constantFrom('response.completed', 'response.failed', 'response.created', 'response.incomplete'),
    response: fc.record({ output: fc.array(any, { maxLength: 2 }), metadata: any, usage: fc.option(tokens) }),
  })
  const event = fc.oneof({ weight: 5, arbitrary: delta }, done, ending)

  /** The same event as other programs would print it: its fields in any order, with any spacing. */
  const printed = fc
    .tuple(event, fc.infiniteStream(fc.nat()), fc.constantFrom(undefined, 1))
    .map(([fields, order, indent]) => {
      const entries = Object.entries(fields).map((entry) => ({ entry, at: order.next().value as number }))
      const sorted = entries.sort((a, b) => a.at - b.at).map(({ entry }) => entry)
      return JSON.stringify(Object.fromEntries(sorted), null, indent)
    })

  t.test('any run of events, printed in any way, gives what JSON.parse gives', async (t) => {
    const framed = printed.map((json) => `event: any\n${json.replaceAll(/^/gm, 'data: ')}\n\n`)
    everyRun(
      t,
      { seed: SEED, numRuns: RUNS },
      [fc.array(framed, { maxLength: 30 }), fc.nat()],
      (events, at) => {
        const stream = Buffer.from(events.join(''))
        const { said } = runInPieces(stream, stream.length === 0 ? [] : [at % stream.length])
        deepStrictEqual(said, referenceOf(stream.toString()))
      },
    )
  })

  t.test('a long event gives the facts of the event, wherever it is split', async (t) => {
    everyRun(t, { seed: SEED, numRuns: RUNS }, [printed, fc.nat()], (json, at) => {
      const bytes = Buffer.from(`data: ${json.replaceAll('\n', '\ndata: ')}\n\n`)
      const read: AnswerFacts[] = []
      const long = new LongEvents(EVENT, (found) => read.push(found))
      const cut = at % (bytes.length + 1)
      long.push(bytes, 0, cut)
      long.push(bytes, cut, bytes.length)
      const {
        spoken: _,
        spokenStart: _start,
        spokenEnd: _end,
        ...facts
      } = readFacts(Buffer.from(json), EVENT)
      deepStrictEqual(
        read.map(({ spoken, spokenStart, spokenEnd, ...found }) => found),
        [facts],
      )
    })
  })

  t.test('garbage is metered to its end without an error', async (t) => {
    const recorded = [...RESPONSES_STREAMS.values()]
    const damaged = fc
      .record({
        bytes: fc.constantFrom(...recorded),
        from: fc.nat(),
        put: fc.uint8Array({ maxLength: 6 }),
        at: fc.nat(),
      })
      .map(({ bytes, from, put, at }) => {
        const part = Buffer.from(bytes.subarray(from % bytes.length))
        part.set(
          put.subarray(0, part.length),
          part.length <= put.length ? 0 : at % (part.length - put.length),
        )
        return part
      })
    const symbols = fc
      .array(
        fc.constantFrom(
          ...'{}[]":,\\u0 aé1\n',
          '"usage":',
          '"type":"response.completed"',
          'data: ',
          '"delta":"',
        ),
      )
      .map((parts) => Buffer.from(parts.join('')))
    everyRun(t, { seed: SEED, numRuns: RUNS }, [fc.oneof(damaged, symbols)], (bytes) => {
      const meter = new ResponsesMeter()
      const out = meter.push(bytes)
      meter.end()
      const whole = responsesNative.readWhole({} as never, bytes)
      return out === bytes && whole.body === bytes && meter.characters <= 1.5 * bytes.length
    })
  })

  t.test('the next delta is known with another number, another text and other padding', async (t) => {
    const print = (text: string, number: number | string, id = 'msg_1', padding = 'x') =>
      Buffer.from(
        `data: {"type":"t.delta","sequence_number":${number},"id":"${id}","delta":"${text}","pad":"${padding}"}\n\n`,
      )
    const next = new RepeatedEvent()
    const remember = (bytes: Buffer) => {
      const data = eventData(bytes, 0, bytes.length)!
      next.remember(bytes, 0, bytes.length, data, readFacts(data, EVENT), EVENT)
    }
    const known = (bytes: Buffer) => next.countRepeated(bytes, 0, bytes.length)
    remember(print('one', 41))
    t.equal(known(print('one', 42)), -1, 'not before the number has differed')
    remember(print('one', 42))
    t.equal(known(print('', 43)), 0)
    t.equal(known(print('潮 😀', 1234567)), 4 + 1 + 5.5)
    t.equal(
      known(print('a\\n\\"\\ud83d\\ude00\\u00e9', 43)),
      1 + 1 + 1 + 5.5 + 2.5,
      'escapes count as what they stand for',
    )
    const padded = print('x', 44, 'msg_1', 'longer')
    t.equal(known(padded), -1)
    remember(padded)
    t.equal(known(print('four', 45, 'msg_1', '')), 4)
    t.equal(known(Buffer.from(print('x', 46).toString().replace('t.delta', 't.other'))), -1, 'another type')
    t.equal(known(print('x', 46).subarray(0, -3)), -1)
    const cut = print('not closed', 45)
    t.equal(next.countRepeated(cut, 0, cut.indexOf('closed')), -1, 'the text does not end within the event')
    const cutInEscape = Buffer.concat([cut.subarray(0, cut.indexOf('closed')), Buffer.from('\\')])
    t.equal(next.countRepeated(cutInEscape, 0, cutInEscape.length), -1, 'nor behind an escape')
    t.equal(next.countRepeated(cut, 0, 5), -1)
  })

  t.test('an error as the first event is kept with its message where other protocols have it', async (t) => {
    const firstError = (stream: string) => {
      const { firstError } = runInPieces(Buffer.from(stream), [])
      return firstError === null ? null : JSON.parse(firstError)
    }
    t.match(firstError(RESPONSES_STREAMS.get('error-at-once')!.toString()), {
      error: { message: 'Slow down, "please".' },
    })
    t.match(firstError(RESPONSES_STREAMS.get('error-flat-at-once')!.toString()), { message: 'It broke.' })
    const failed = '{"type":"response.failed","response":{"error":{"message":"No."},"usage":null}}'
    t.match(firstError(`data: ${failed}\n\n`), { error: { message: 'No.' } })
    t.match(firstError('data: {"error":{"message":"Of another shape."}}\n\n'), {
      error: { message: 'Of another shape.' },
    })
    t.match(firstError('event: error\ndata: {"message":"By name."}\n\n'), { message: 'By name.' })
    const created = 'data: {"type":"response.created","response":{"error":null}}\n\n'
    t.match(firstError(`${created}data: ${failed}\n\n`), { error: { message: 'No.' } })
    const word = 'data: {"type":"response.output_text.delta","delta":"x"}\n\n'
    t.equal(firstError(`${created}${word}data: ${failed}\n\n`), null, 'one behind content is a later one')
  })

  t.test('a report of usage that is none is not taken for one', async (t) => {
    const usageOf = (usage: string) =>
      responsesNative.readWhole({} as never, Buffer.from(`{"output":[],"usage":${usage}}`)).metered.usage
    t.match(usageOf('{"input_tokens":5,"output_tokens":0}'), { prompt: 5, output: 0, cached: 0 })
    for (const none of ['null', '{}', '[]', '7', '{"input_tokens":"5","output_tokens":6}'])
      t.equal(usageOf(none), null, none)
    for (const none of ['{"input_tokens":1e300,"output_tokens":1}', '{"input_tokens":1,"output_tokens":-1}'])
      t.equal(usageOf(none), null, none)
    t.strictSame(
      usageOf(
        '{"input_tokens":10.7,"output_tokens":3,"input_tokens_details":{"cached_tokens":8,"cache_write_tokens":9},"output_tokens_details":{"reasoning_tokens":50}}',
      ),
      { prompt: 10, cached: 8, cacheWrite: 2, output: 3, reasoning: 3, serverToolCalls: 0 },
      'parts never exceed the whole',
    )
  })

  t.test('a whole answer: usage, characters, tools that the upstream ran', async (t) => {
    const output = [
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] },
      { type: 'web_search_call', status: 'completed', action: { query: 'not counted' } },
      {
        type: 'message',
        content: [
          { type: 'output_text', text: '潮😀' },
          { type: 'refusal', refusal: 'no' },
        ],
      },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'image_generation_call', result: 'iVBORw0KGgo=' },
    ]
    const usage = { input_tokens: 9, output_tokens: 4, input_tokens_details: { cached_tokens: 3 } }
    const read = (response: object | string) => {
      const body = Buffer.from(typeof response === 'string' ? response : JSON.stringify(response))
      const whole = responsesNative.readWhole({} as never, body)
      t.equal(whole.body, body, 'its bytes as they came')
      return whole
    }
    t.match(read({ status: 'completed', error: null, output, usage }), {
      isAnswer: true,
      metered: {
        usage: { prompt: 9, cached: 3, output: 4, serverToolCalls: 2 },
        characters: 15.5,
        charactersSinceUsage: 0,
      },
    })
    t.match(read({ status: 'incomplete', output }), {
      isAnswer: true,
      metered: {
        usage: { prompt: 0, output: 0, serverToolCalls: 2 },
        isUsageWhole: false,
        characters: 15.5,
        charactersSinceUsage: 15.5,
      },
    })
    const failed = read({ status: 'failed', error: { message: 'x' }, output: [] })
    t.match(failed, { isAnswer: false })
    t.match(read({ error: { message: 'x' } }), { isAnswer: false })
    t.match(read('<html>busy</html>'), { isAnswer: false, metered: { usage: null, characters: 0 } })
  })
})

t.test('stream split anywhere same output same usage', async (t) => {
  // Every recorded stream, split at every byte: same output, same usage.
  // See docs/failure-modes.md, "Streams", rows 30 and 31.
  const SEED = 31
  const RANDOM_SPLITS = 300

  for (const [name, stream] of RESPONSES_STREAMS) {
    t.test(name, async (t) => {
      const said = referenceOf(name.endsWith('open-end') ? `${stream}\n\n` : stream.toString())
      const { firstError } = runInPieces(stream, [])
      t.equal(firstError !== null, name.endsWith('at-once'))
      const check = (cuts: readonly number[]): boolean => {
        const got = runInPieces(stream, cuts)
        const isSame = got.output.equals(stream) && got.firstError === firstError
        if (isSame && JSON.stringify(got.said) === JSON.stringify(said)) return true
        t.same(got.said, said, `said, cut at ${cuts}`)
        t.equal(got.firstError, firstError, `first error, cut at ${cuts}`)
        return t.equal(got.output.toString(), stream.toString(), `output, cut at ${cuts}`)
      }
      checkEverySplit(t, stream, { seed: SEED, pairs: RANDOM_SPLITS }, check)
    })
  }

  t.test(
    'events with pictures and long answers are longer than is kept, and read all the same',
    async (t) => {
      const print = (event: object) => `data: ${JSON.stringify(event)}\n\n`
      const picture = 'A'.repeat(MAX_READ_EVENT_BYTES)
      const item = { id: 'ig_1', result: picture, status: 'completed', type: 'image_generation_call' }
      const text = `"usage":{"output_tokens":9},]}\\ ${'ä"\\'.repeat(MAX_READ_EVENT_BYTES / 4)}`
      const output = [
        { type: 'message', content: [{ type: 'output_text', text, logprobs: [[{ usage: 1 }]] }] },
        item,
      ]
      const usage = {
        input_tokens: 70,
        input_tokens_details: { cached_tokens: 64 },
        output_tokens: 30,
        output_tokens_details: { reasoning_tokens: 10 },
      }
      const partial = { type: 'response.image_generation_call.partial_image', partial_image_b64: picture }
      const response = { output, status: 'completed', instructions: text, usage, metadata: { a: '"' } }
      const parts = [
        print({ type: 'response.output_text.delta', delta: 'before' }),
        print(partial),
        print({ type: 'response.output_item.done', item }),
        print({ type: 'response.output_text.delta', delta: 'after' }),
        `event: response.completed\ndata: ${JSON.stringify({ response, type: 'response.completed' }, null, 1).replaceAll('\n', '\ndata: ')}\n\n`,
      ]
      const stream = Buffer.from(parts.join(''))
      const said = referenceOf(stream.toString())
      t.match(said, { isComplete: true, serverToolCalls: 1, usage: { cached: 64 }, characters: 11 })
      const edges = parts.map((_, i) => Buffer.byteLength(parts.slice(0, i + 1).join('')))
      const near = edges.flatMap((edge) => [edge - 2, edge - 1, edge, edge + 1, edge + MAX_READ_EVENT_BYTES])
      const random = new Random(SEED)
      const splits = [
        [],
        ...near.map((at) => [at]),
        ...near.map(() => [random.int(0, stream.length), random.int(0, stream.length)].sort((a, b) => a - b)),
        Array.from({ length: Math.floor(stream.length / 65_537) }, (_, i) => (i + 1) * 65_537),
      ].map((cuts) => cuts.filter((at) => at > 0 && at < stream.length))
      for (const cuts of splits) {
        const got = runInPieces(stream, cuts)
        if (!got.output.equals(stream)) t.fail(`output, cut at ${cuts}`)
        if (JSON.stringify(got.said) !== JSON.stringify(said)) t.same(got.said, said, `cut at ${cuts}`)
      }
      t.ok(splits.length > 40)
    },
  )

  t.test('a long event that is broken off says nothing', async (t) => {
    const usage = '"usage":{"input_tokens":1,"output_tokens":1}'
    const text = 'x'.repeat(MAX_READ_EVENT_BYTES)
    const whole = `data: {"type":"response.completed","response":{${usage},"output":[{"text":"${text}"}]}}`
    t.match(runInPieces(Buffer.from(whole), []).said, { isComplete: true, usage: { output: 1 } })
    const broken = Buffer.from(whole.slice(0, -4))
    t.match(runInPieces(broken, []).said, { isComplete: false, usage: null })
  })
})
