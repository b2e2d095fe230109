/** What a meter finds in answers of the responses protocol, held against JSON.parse; on garbage it ends without an error. */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { responsesNative } from '../../../../src/protocols/responses/dialect.ts'
import { ResponsesMeter } from '../../../../src/protocols/responses/meter.ts'
import { NextDelta } from '../../../../src/protocols/responses/next-delta.ts'
import { itemOf, kindOf, scanEvent } from '../../../../src/protocols/responses/scan.ts'
import { readResponsesUsage } from '../../../../src/protocols/responses/usage.ts'
import { LongEvents, usageOf } from '../../../../src/protocols/sse/long-events.ts'
import { ANY_CHARACTER } from '../../../support/any-character.ts'
import { everyRun } from '../../../support/every-run.ts'
import { RESPONSES_STREAMS, referenceOf, runInPieces } from './streams.ts'

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
const delta = fc.record({ type, delta: text, obfuscation: text, item_id: fc.constantFrom('a', 'b'), x: any })
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
    const read: object[] = []
    const long = new LongEvents('responses', (found) => {
      const kind = kindOf(found.texts.type ?? '')
      read.push({
        kind,
        characters: kind === 'delta' ? found.characters : 0,
        usage: readResponsesUsage(usageOf(found)),
        item: kind === 'item_done' ? itemOf(found.texts) : null,
      })
    })
    const cut = at % (bytes.length + 1)
    long.push(bytes, 0, cut)
    long.push(bytes, cut, bytes.length)
    const { kind, characters, usage, item } = scanEvent(Buffer.from(json))
    deepStrictEqual(read, [{ kind, characters, usage: readResponsesUsage(usage), item }])
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
      part.set(put.subarray(0, part.length), part.length <= put.length ? 0 : at % (part.length - put.length))
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

t.test('the next delta is known by its beginning, with another number and another text', async (t) => {
  const print = (text: string, number: number | string, id = 'msg_1') =>
    Buffer.from(
      `data: {"type":"t.delta","sequence_number":${number},"id":"${id}","delta":"${text}","pad":"x"}\n\n`,
    )
  const next = new NextDelta()
  const first = print('one', 41)
  const numberStart = first.indexOf('41')
  next.remember(first, { start: 0, numberStart, numberEnd: numberStart + 2, textStart: first.indexOf('one') })
  const known = (bytes: Buffer) => next.charactersIn(bytes, 0, bytes.length)
  t.equal(known(print('', 42)), 0)
  t.equal(known(print('潮 😀', 1234567)), 4 + 1 + 5.5)
  t.equal(
    known(print('a\\n\\"\\ud83d\\ude00\\u00e9', 43)),
    1 + 1 + 1 + 5.5 + 2.5,
    'escapes count as what they stand for',
  )
  t.equal(known(print('x', 44, 'msg_2')), -1)
  t.equal(known(print('x', '"44"')), -1)
  const cut = print('not closed', 45)
  t.equal(next.charactersIn(cut, 0, cut.indexOf('closed')), -1, 'the text does not end within the event')
  const cutInEscape = Buffer.concat([cut.subarray(0, cut.indexOf('closed')), Buffer.from('\\')])
  t.equal(next.charactersIn(cutInEscape, 0, cutInEscape.length), -1, 'nor behind an escape')
  t.equal(next.charactersIn(cut, 0, 5), -1)
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
