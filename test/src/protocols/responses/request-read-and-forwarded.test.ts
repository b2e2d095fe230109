/** What is read of a request, and what of it changes on its way. See docs/api-rules.md, "Responses" and "Attempts". */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { findNameFault } from '../../../../src/core/json/names.ts'
import type { EncodeOptions } from '../../../../src/protocols/dialect.ts'
import { RESPONSES_NAMES } from '../../../../src/protocols/request/known-names.ts'
import { responsesDialect, responsesNative } from '../../../../src/protocols/responses/dialect.ts'
import { ANY_CHARACTER } from '../../../support/any-character.ts'
import { everyRun } from '../../../support/every-run.ts'
import { encodeOptions } from '../encode-options.ts'

const SEED = 61
const RUNS = 500
const INPUT = '"input":[{"role":"user","content":"hi"}]'

const read = (body: string | Buffer) =>
  responsesDialect.read({ path: '/v1/responses', query: '', body: Buffer.from(body) })
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
    { role: 'user', content: [{ type: 'input_image', image_url: 'https://a.example/x.png', detail: 'low' }] },
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
  const none = { previous: null, conversation: null, isStored: true, isBackground: false }
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
      fc.pre(findNameFault(Buffer.from(body), RESPONSES_NAMES) === null)
      const out = wire(body)
      deepStrictEqual(JSON.parse(out), {
        ...JSON.parse(JSON.stringify(before)),
        model: 'theirs',
        max_output_tokens: limit ?? 4096,
      })
    },
  )
})
