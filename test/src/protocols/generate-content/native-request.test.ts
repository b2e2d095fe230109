/** What is read, and the one change. See docs/api-rules.md, "Generate content" and "Protocols and translation". */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { findNameFault } from '../../../../src/core/json/names.ts'
import type { EncodeOptions } from '../../../../src/protocols/dialect.ts'
import {
  generateContentDialect,
  generateContentNative,
} from '../../../../src/protocols/generate-content/dialect.ts'
import { GENERATE_CONTENT_NAMES } from '../../../../src/protocols/request/known-names.ts'
import { ANY_CHARACTER } from '../../../support/any-character.ts'
import { everyRun } from '../../../support/every-run.ts'
import { encodeOptions } from '../encode-options.ts'

const SEED = 3
const RUNS = 500
const PATH = '/v1beta/models/ours:generateContent'
const CONTENTS = '"contents":[{"role":"user","parts":[{"text":"hi"}]}]'

const read = (body: string | Buffer, path = PATH, query = '') =>
  generateContentDialect.read({ path, query, body: Buffer.from(body) })
const wire = (body: string, options: Partial<EncodeOptions> = {}): string =>
  generateContentNative.encodeRequest(read(body), encodeOptions(options)).body.toString()

t.test('model and stream from the path, decoded', async (t) => {
  const rows: readonly (readonly [path: string, model: string, stream: boolean])[] = [
    ['/v1beta/models/%ff:generateContent', '%ff', false],
    ['/v1beta/models/gemini-2.5-flash:generateContent', 'gemini-2.5-flash', false],
    ['/v1beta/models/gemini-2.5-flash:streamGenerateContent', 'gemini-2.5-flash', true],
    ['/v1beta/models/vendor%2Fmodel:generateContent', 'vendor/model', false],
    ['/v1beta/models/vendor/model:generateContent', 'vendor/model', false],
    ['/v1beta/models/models/x:generateContent', 'x', false],
    ['/v1beta/models/models%2Fx:generateContent', 'x', false],
    ['/v1beta/models/a:7b:streamGenerateContent', 'a:7b', true],
    ['/v1beta/models/x%3AstreamGenerateContent', 'x', true],
    ['/v1beta/models/%C3%BC:generateContent', 'ü', false],
  ]
  for (const [path, model, stream] of rows) t.match(read(`{${CONTENTS}}`, path), { model, stream }, path)
  const others = [
    ...['/v1beta/models/x:countTokens', '/v1beta/models/x', '/v1beta/models/:generateContent'],
    ...['/v1beta/models/models/:generateContent', '/v1/models/x:generateContent'],
    '/v1beta/models/x:toString',
  ]
  for (const path of others) t.throws(() => read(`{${CONTENTS}}`, path), { code: 'not_found' }, path)
})

t.test('a stream is events with alt=sse, else an array', async (t) => {
  const path = '/v1beta/models/x:streamGenerateContent'
  const sse = 'data: {"candidates":[{"content":{"parts":[{"text":"abc"}]}}]}\n\n'
  const array = '[{"candidates":[{"content":{"parts":[{"text":"abc"}]}}]}'
  const heard = (query: string, piece: string): number => {
    const stream = generateContentNative.openStream(read(`{${CONTENTS}}`, path, query))
    const bytes = Buffer.from(piece)
    t.equal(stream.push(bytes), bytes)
    t.equal(stream.end(), null)
    return stream.characters
  }
  for (const query of ['alt=sse', '?alt=sse', 'key=k&alt=sse', 'alt=%73se'])
    t.equal(heard(query, sse), 3, query)
  for (const query of ['', 'alt=json', 'key=alt%3Dsse']) t.equal(heard(query, array), 3, query)
  t.equal(generateContentNative.streamContentType, null)
})

t.test('limit, candidates and built-in tools, under either name of each field', async (t) => {
  t.match(read(`{${CONTENTS}}`), { outputLimit: null, choices: 1, builtInTools: { length: 0 } })
  t.match(read(`{${CONTENTS},"generationConfig":{"maxOutputTokens":5,"candidateCount":3}}`), {
    outputLimit: 5,
    choices: 3,
  })
  t.match(read(`{${CONTENTS},"generation_config":{"max_output_tokens":5,"candidate_count":3}}`), {
    outputLimit: 5,
    choices: 3,
  })
  for (const name of ['googleSearch', 'google_search', 'googleSearchRetrieval', 'google_search_retrieval']) {
    t.strictSame(read(`{${CONTENTS},"tools":[{"functionDeclarations":[]},{"${name}":{}}]}`).builtInTools, [
      'web_search',
    ])
    t.strictSame(read(`{${CONTENTS},"tools":{"${name}":{}}}`).builtInTools, ['web_search'])
    t.strictSame(read(`{${CONTENTS},"tools":[{"${name}":null}]}`).builtInTools, [])
  }
  t.strictSame(read(`{${CONTENTS},"tools":[{"codeExecution":{}},{"urlContext":{}}]}`).builtInTools, [
    'code_interpreter',
    'url_context',
  ])
})

t.test('promptBytes: contents and systemInstruction, as sent, to the byte', async (t) => {
  const contents = '[ {"parts" : [{"text":"häh\\u0041"}]} ]'
  const system = '{"parts":{"text":"be  brief"}}'
  const bytes = (...json: string[]) => json.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  t.equal(read(`{"contents":${contents}}`).promptBytes, bytes(contents))
  for (const name of ['systemInstruction', 'system_instruction', 'system\\u005finstruction'])
    t.equal(read(` { "${name}" : ${system}, "contents": ${contents} }`).promptBytes, bytes(contents, system))
  t.equal(read(`{"systemInstruction":null,"contents":${contents}}`).promptBytes, bytes(contents))
})

t.test('the one change: an omitted limit is raised, wherever it belongs', async (t) => {
  const rows: readonly (readonly [sent: string, expected: string])[] = [
    [`{${CONTENTS}}`, `{"generationConfig":{"maxOutputTokens":4096},${CONTENTS}}`],
    [`\n{ ${CONTENTS} }`, `\n{"generationConfig":{"maxOutputTokens":4096}, ${CONTENTS} }`],
    [`{${CONTENTS},"generationConfig":{}}`, `{${CONTENTS},"generationConfig":{"maxOutputTokens":4096}}`],
    [
      `{${CONTENTS},"generationConfig": { } }`,
      `{${CONTENTS},"generationConfig": {"maxOutputTokens":4096 } }`,
    ],
    [
      `{${CONTENTS},"generation_config":{ "topK":1}}`,
      `{${CONTENTS},"generation_config":{"maxOutputTokens":4096, "topK":1}}`,
    ],
    [`{"generationConfig":null,${CONTENTS}}`, `{"generationConfig":{"maxOutputTokens":4096},${CONTENTS}}`],
    [
      `{"generationConfig":{"topK":1,"maxOutputTokens" : null},${CONTENTS}}`,
      `{"generationConfig":{"topK":1,"maxOutputTokens" : 4096},${CONTENTS}}`,
    ],
    [
      `{"generationConfig":{"max_output_tokens":null},${CONTENTS}}`,
      `{"generationConfig":{"max_output_tokens":4096},${CONTENTS}}`,
    ],
  ]
  for (const [sent, expected] of rows) {
    t.equal(wire(sent), expected)
    t.equal(wire(sent, { outputCeiling: null }), sent, 'a model without a ceiling has none to raise to')
  }
})

t.test('an explicit limit, and every other byte, stays', async (t) => {
  for (const name of ['maxOutputTokens', 'max_output_tokens']) {
    const sent = `{ "unknown":1.0e+2 ,${CONTENTS},"generationConfig":{"${name}":7,"x":[]},"model":"models/ours"}\r\n`
    t.equal(wire(sent), sent)
  }
})

t.test('what could be read in two ways is refused', async (t) => {
  const refused = (body: string, message: RegExp) =>
    t.throws(() => read(body), { code: 'invalid_request', message })
  refused(`{${CONTENTS},${CONTENTS}}`, /'contents'.*more than once/)
  refused(`{${CONTENTS},"systemInstruction":{},"system_instruction":{}}`, /'system_instruction'.*same field/)
  refused(`{${CONTENTS},"generationConfig":{},"generation_config":{}}`, /'generation_config'.*same field/)
  refused(
    `{${CONTENTS},"generationConfig":{"maxOutputTokens":1,"max_output_tokens":9}}`,
    /'generationConfig.max_output_tokens'.*same field/,
  )
  refused(
    `{${CONTENTS},"generationConfig":{"maxOutputTokens":1,"max\\u004futputTokens":9}}`,
    /'generationConfig.maxOutputTokens'.*more than once/,
  )
  refused(`{${CONTENTS},"generationConfig":{"candidateCount":1,"candidate_count":9}}`, /candidate_count/)
})

t.test('a body that is no request is refused with a message that names the field', async (t) => {
  const refused = (body: string, message: RegExp) =>
    t.throws(() => read(body), { code: 'invalid_request', message })
  refused('', /empty/)
  refused('nonsense', /not valid JSON/)
  refused('[]', /request body/)
  refused('{}', /'contents'/)
  refused('{"contents":[]}', /'contents'/)
  refused('{"contents":"hi"}', /'contents'/)
  refused('{"contents":["hi"]}', /'contents\[0\]'/)
  refused('{"contents":[{"role":1}]}', /'contents\[0\].role'/)
  refused('{"contents":[{"parts":["hi"]}]}', /'contents\[0\].parts\[0\]'/)
  refused('{"contents":[{"parts":[{"text":"a"},{"text":1}]}]}', /'contents\[0\].parts\[1\].text'/)
  refused(`{${CONTENTS},"systemInstruction":"be brief"}`, /'systemInstruction'/)
  refused(
    `{${CONTENTS},"system_instruction":{"parts":[{"text":{}}]}}`,
    /'system_instruction.parts\[0\].text'/,
  )
  refused(`{${CONTENTS},"generationConfig":[]}`, /'generationConfig'/)
  refused(`{${CONTENTS},"generationConfig":{"maxOutputTokens":0}}`, /'generationConfig.maxOutputTokens'/)
  refused(`{${CONTENTS},"generationConfig":{"maxOutputTokens":"5"}}`, /'generationConfig.maxOutputTokens'/)
  refused(`{${CONTENTS},"generation_config":{"candidate_count":1.5}}`, /'generation_config.candidate_count'/)
  refused(`{${CONTENTS},"generationConfig":{"temperature":2.1}}`, /'generationConfig.temperature'/)
  refused(`{${CONTENTS},"tools":["googleSearch"]}`, /'tools\[0\]'/)
  refused('['.repeat(100_000), /deeper than 512 levels/)
})

t.test('one object where a list is meant is taken, as the vendor does', async (t) => {
  const body = '{"contents":{"parts":{"text":"hi"}},"system_instruction":{"parts":{"text":"x"}}}'
  t.equal(wire(body, { outputCeiling: null }), body)
  t.equal(read(body).promptBytes, '{"parts":{"text":"hi"}}'.length + '{"parts":{"text":"x"}}'.length)
})

const space = fc.constantFrom('', ' ', '\n\t')
const json = fc.jsonValue({ stringUnit: ANY_CHARACTER, maxDepth: 2 })
const more = fc.dictionary(
  fc.string({ unit: ANY_CHARACTER, maxLength: 8 }).map((name) => `x-${name}`),
  json,
  { maxKeys: 3, noNullPrototype: true },
)
const limit = fc.constantFrom(undefined, null, 7)

t.test('whatever the request holds, in whatever spacing: nothing but the limit is changed', async (t) => {
  const request = fc.record({
    fields: more,
    config: fc.option(fc.option(fc.tuple(more, limit), { nil: null }), { nil: undefined }),
    isFirst: fc.boolean(),
    gap: space,
  })
  everyRun(t, { seed: SEED, numRuns: RUNS }, [request], ({ fields, config, isFirst, gap }) => {
    const [settings, maxOutputTokens] = config ?? []
    const generationConfig = config == null ? config : { ...settings, maxOutputTokens }
    const contents = [{ parts: [{ text: '"generationConfig":{' }] }]
    const before = isFirst
      ? { generationConfig, contents, ...fields }
      : { ...fields, contents, generationConfig }
    const sent = `${gap}${JSON.stringify(before, null, gap)}${gap}`
    fc.pre(findNameFault(Buffer.from(sent), GENERATE_CONTENT_NAMES) === null)
    const after = JSON.parse(wire(sent))
    const expected = JSON.parse(sent)
    if (maxOutputTokens == null)
      expected.generationConfig = {
        ...expected.generationConfig,
        maxOutputTokens: encodeOptions().outputCeiling,
      }
    deepStrictEqual(after, expected)
  })
})
