/**
 * On a native path the body changes in model id, output limit and usage option, and nowhere else.
 * See docs/api-rules.md, "Protocols and translation".
 */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { topLevelFields } from '../../../../src/core/json/fields.ts'
import { findNameFault } from '../../../../src/core/json/names.ts'
import {
  type NativeOptions,
  readChatCall,
  wireBody,
} from '../../../../src/protocols/chat-completions/dialect.ts'
import { CHAT_COMPLETIONS_NAMES } from '../../../../src/protocols/request/known-names.ts'
import { ANY_CHARACTER } from '../../../support/any-character.ts'
import { everyRun } from '../../../support/every-run.ts'

const SEED = 34
const RUNS = 1000
const OPTIONS: NativeOptions = {
  upstreamModel: 'theirs',
  outputCeiling: 4096,
  outputLimitField: 'max_tokens',
  askUsage: true,
}
const MESSAGES = '"messages":[{"role":"user","content":"hi"}]'

const wire = (body: string, options: Partial<NativeOptions> = {}): string =>
  wireBody(readChatCall(Buffer.from(body)), { ...OPTIONS, ...options }).toString('utf8')

t.test('the model is renamed, the limit raised, usage asked for; every other byte stays', async (t) => {
  t.equal(
    wire(
      `{ "model" : "ours" ,\r\n ${MESSAGES},"stream":true, "x":1.0e+2,"stream_options":{"include_usage":false} }`,
    ),
    `{"max_tokens":4096, "model" : "theirs" ,\r\n ${MESSAGES},"stream":true, "x":1.0e+2,"stream_options":{"include_usage":true} }`,
  )
  t.equal(
    wire(`{"model":"ours",${MESSAGES},"stream":true}`),
    `{"max_tokens":4096,"stream_options":{"include_usage":true},"model":"theirs",${MESSAGES},"stream":true}`,
  )
})

t.test('nothing to change is nothing changed', async (t) => {
  const same = `\t{"stream_options":{"include_usage":true,"include_obfuscation":null},"model":"theirs","stream":true,${MESSAGES},"max_tokens":7}\n`
  t.equal(wire(same), same)
  const whole = `{"model":"theirs",${MESSAGES},"max_tokens":7}`
  t.equal(wire(whole), whole, 'an answer in one piece tells its usage unasked')
})

t.test('other stream options are kept beside the usage option', async (t) => {
  const body = wire(
    `{"model":"theirs","stream":true,"max_tokens":1,${MESSAGES},"stream_options":{"include_obfuscation":false}}`,
  )
  t.strictSame(JSON.parse(body).stream_options, { include_obfuscation: false, include_usage: true })
})

t.test('null stands for absent', async (t) => {
  t.equal(
    wire(`{"model":"theirs","max_tokens":null,"stream":true,"stream_options":null,${MESSAGES}}`),
    `{"model":"theirs","max_tokens":4096,"stream":true,"stream_options":{"include_usage":true},${MESSAGES}}`,
  )
})

t.test('the raised limit has the name that the channel knows', async (t) => {
  const raised = wire(`{"model":"theirs",${MESSAGES}}`, { outputLimitField: 'max_completion_tokens' })
  t.equal(raised, `{"max_completion_tokens":4096,"model":"theirs",${MESSAGES}}`)
  const explicit = `{"model":"theirs",${MESSAGES},"max_tokens":9}`
  t.equal(wire(explicit), explicit, 'an explicit one stays')
  const open = `{"model":"theirs",${MESSAGES}}`
  t.equal(wire(open, { outputCeiling: null }), open, 'a model without a ceiling has none to raise to')
})

t.test('a limit goes in the field that the channel obeys, and in no other', async (t) => {
  const body = (fields: string) => `{"model":"theirs",${MESSAGES}${fields}}`
  const sent = (fields: string, options: Partial<NativeOptions> = {}) => wire(body(fields), options)
  const newer = { outputLimitField: 'max_completion_tokens' } as const
  t.equal(sent(', "max_completion_tokens" : 7e0'), body(', "max_tokens":7e0'))
  t.equal(sent(',"max_tokens":9,"seed":1', newer), body(',"max_completion_tokens":9,"seed":1'))
  t.equal(sent(',"max_\\u0074okens":9', newer), body(',"max_completion_tokens":9'))
  const asWritten = ',"max_completion_tokens":7,"max_tokens":9'
  t.equal(sent(asWritten, { outputLimitField: null }), body(asWritten), 'a channel that names no field')
  for (const [first, second] of [
    [7, 9],
    [9, 7],
    [9, 9],
    [null, 9],
    [9, null],
  ]) {
    const both = `,"max_tokens":${first},"max_completion_tokens":${second}`
    for (const options of [{ outputLimitField: 'max_tokens' } as const, newer]) {
      const { model: _model, messages: _messages, ...limits } = JSON.parse(sent(both, options))
      const field = options.outputLimitField
      t.equal(limits[field], 9, 'the larger, as it is estimated')
      const others = Object.keys(limits).filter((name) => name !== field && limits[name] !== null)
      t.same(others, [], `${both} in ${field}`)
    }
  }
  const last =
    ',"stream":true,"max_tokens":5,"max_completion_tokens":6,"stream_options":{"include_usage":true}'
  t.equal(sent(last, { askUsage: false }), body(',"stream":true,"max_tokens":6'))
})

t.test('stream_options goes with name and comma, wherever it stands', async (t) => {
  const [model, stream, options] = [
    '"model":"theirs"',
    '"stream":true',
    '"stream_options" : {"include_usage":true}',
  ]
  const orders: ReadonlyArray<readonly [with_: string, without: string]> = [
    [`{${options},${model},${MESSAGES},${stream}}`, `{${model},${MESSAGES},${stream}}`],
    [`{${model},${options} , ${MESSAGES},${stream}}`, `{${model}, ${MESSAGES},${stream}}`],
    [`{${model},${MESSAGES},${stream} , ${options} }`, `{${model},${MESSAGES},${stream}  }`],
  ]
  for (const [body, expected] of orders)
    t.equal(wire(body, { askUsage: false, outputCeiling: null }), expected)
  const first = wire(`{${options},"model":"ours",${MESSAGES},${stream}}`, { askUsage: false })
  t.equal(first, `{"max_tokens":4096,"model":"theirs",${MESSAGES},${stream}}`)
})

t.test('names written with escapes are the names they stand for', async (t) => {
  const body = `{"m\\u006fdel":"ours","str\\u0065am":true,"max\\u005ftokens":5,${MESSAGES},"stream\\u005foptions":{"include_usage":false}}`
  const parsed = JSON.parse(wire(body))
  t.strictSame(parsed.model, 'theirs')
  t.strictSame(parsed.stream_options, { include_usage: true })
  t.strictSame(parsed.max_tokens, 5)
  t.equal(Object.keys(parsed).length, 5, 'none was added beside them')
})

t.test('a field that stands twice is refused, escaped or not', async (t) => {
  const refused = (body: string) =>
    t.throws(() => readChatCall(Buffer.from(body)), { code: 'invalid_request', message: /more than once/ })
  refused(`{"model":"cheap",${MESSAGES},"model":"dear"}`)
  refused(`{"model":"cheap",${MESSAGES},"mod\\u0065l":"dear"}`)
  refused(`{"model":"x",${MESSAGES},"max_tokens":1,"max_tokens":100000}`)
})

t.test('where both output limits stand, the larger is estimated', async (t) => {
  const limit = (fields: string) =>
    readChatCall(Buffer.from(`{"model":"x",${MESSAGES}${fields}}`)).outputLimit
  t.equal(limit(''), null)
  t.equal(limit(',"max_tokens":null,"max_completion_tokens":null'), null)
  t.equal(limit(',"max_tokens":5'), 5)
  t.equal(limit(',"max_completion_tokens":6,"max_tokens":null'), 6)
  t.equal(limit(',"max_completion_tokens":1,"max_tokens":100000'), 100_000)
  t.equal(limit(',"max_completion_tokens":9,"max_tokens":2'), 9)
})

t.test('a body that is no request is refused with a message that names the fault', async (t) => {
  const refused = (body: string | Buffer, message: RegExp) =>
    t.throws(() => readChatCall(Buffer.from(body)), { code: 'invalid_request', message })
  refused('', /empty/)
  refused('nonsense', /not valid JSON/)
  refused('\ufeff{}', /not valid JSON/)
  refused('[]', /not valid/)
  refused('null', /not valid/)
  refused(`{${MESSAGES}}`, /'model'/)
  refused('{"model":"x","messages":[]}', /'messages'/)
  refused('{"model":"x","messages":[{"role":"user","content":[{"text":1}]}]}', /'messages\[0\]/)
  refused(`{"model":"x",${MESSAGES},"temperature":2.1}`, /'temperature'/)
  refused(`{"model":"x",${MESSAGES},"max_tokens":0}`, /'max_tokens'/)
  refused('['.repeat(100_000), /deeper than 512 levels/)
  refused('['.repeat(200), /not valid JSON/)
  refused(`{"model":"x",${MESSAGES},"stream_options":{"include_usage":true,"x":1}}`, /'stream_options'.*"x"/)
})

const tricky = fc.oneof(
  fc.string({ unit: ANY_CHARACTER, maxLength: 10 }),
  fc.constantFrom(
    '"',
    '\\',
    '"model":"x"',
    '","stream_options":{',
    '}',
    ']',
    '\u0000',
    '😀',
    '{"messages":[',
  ),
)
const other = fc.dictionary(
  fc.string({ unit: ANY_CHARACTER, maxLength: 8 }).map((name) => `x-${name}`),
  fc.jsonValue({ stringUnit: ANY_CHARACTER, maxDepth: 3 }),
  { maxKeys: 4, noNullPrototype: true },
)
const request = fc
  .tuple(
    fc.record(
      {
        stream: fc.constantFrom(true, false, null),
        stream_options: fc.constantFrom(
          null,
          {},
          { include_usage: true },
          { include_usage: false, include_obfuscation: true },
        ),
        max_tokens: fc.constantFrom(null, 17),
        max_completion_tokens: fc.constantFrom(null, 19),
        metadata: fc.dictionary(tricky, tricky, { maxKeys: 3, noNullPrototype: true }),
      },
      { requiredKeys: [] },
    ),
    other,
    fc.array(fc.record({ role: fc.constantFrom('user', 'system'), content: tricky, name: tricky }), {
      minLength: 1,
      maxLength: 3,
    }),
    fc.constantFrom('ours', 'theirs'),
    fc.infiniteStream(fc.nat()),
  )
  .map(([fields, more, messages, model, order]) => {
    const entries = Object.entries({ ...more, ...fields, messages, model })
    return entries
      .map((entry) => ({ entry, at: order.next().value as number }))
      .sort((a, b) => a.at - b.at)
      .map(({ entry }) => entry)
  })
const space = fc.constantFrom('', ' ', '\n\t', '\r\n  ')

t.test('whatever the request holds, in whatever order and spacing', async (t) => {
  const options = fc.record({
    upstreamModel: fc.constant('theirs'),
    outputCeiling: fc.constantFrom(null, 4096),
    outputLimitField: fc.constantFrom('max_tokens' as const, 'max_completion_tokens' as const),
    askUsage: fc.boolean(),
  })
  everyRun(t, { seed: SEED, numRuns: RUNS }, [request, space, options], (entries, gap, options) => {
    const fields = entries.map(
      ([name, value]) => `${JSON.stringify(name)}${gap}:${gap}${JSON.stringify(value)}`,
    )
    const source = Buffer.from(`${gap}{${gap}${fields.join(`${gap},${gap}`)}${gap}}${gap}`)
    fc.pre(findNameFault(source, CHAT_COMPLETIONS_NAMES) === null)
    const before: Record<string, unknown> = JSON.parse(source.toString('utf8'))
    const out = wireBody(readChatCall(source), options)
    const after = JSON.parse(out.toString('utf8'))
    const expected: Record<string, unknown> = { ...before, model: 'theirs' }
    const limit = before.max_completion_tokens ?? before.max_tokens ?? options.outputCeiling
    const other = options.outputLimitField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'
    if (before[other] != null) delete expected[other]
    if (limit !== null) expected[options.outputLimitField] = limit
    if (!options.askUsage) delete expected.stream_options
    else if (before.stream === true)
      expected.stream_options = { ...(before.stream_options as object | null), include_usage: true }
    deepStrictEqual(after, expected)
    const [was, is] = [topLevelFields(source), topLevelFields(out)]
    for (const [name, span] of was.fields) {
      if (['model', 'max_tokens', 'max_completion_tokens', 'stream_options'].includes(name)) continue
      const now = is.fields.get(name)!
      const [old, kept] = [source.subarray(span.nameStart, span.end), out.subarray(now.nameStart, now.end)]
      if (!old.equals(kept)) throw new Error(`${name} was changed`)
    }
  })
})
