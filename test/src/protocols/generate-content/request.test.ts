/** Requests of generate-content: read, translated, counted. */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { Failure } from '../../../../schemas/failure.ts'
import { readGenerateContent } from '../../../../simulator/dialects/generate-content/request.ts'
import { findNameFault } from '../../../../src/core/json/names.ts'
import { MAX_JSON_LEVELS, scanJson } from '../../../../src/core/json/scanner/tape.ts'
import { readChatCall } from '../../../../src/protocols/chat-completions/dialect.ts'
import type { EncodeOptions } from '../../../../src/protocols/dialect.ts'
import { countBody } from '../../../../src/protocols/generate-content/count.ts'
import { generateContentNative } from '../../../../src/protocols/generate-content/dialect.ts'
import { GENERATE_CONTENT_NAMES } from '../../../../src/protocols/request/known-names.ts'
import { ANY_CHARACTER } from '../../../support/any-character.ts'
import { everyRun } from '../../../support/every-run.ts'
import { readAtPath } from '../../../support/read-at-path.ts'
import { encodeOptions } from '../encode-options.ts'
import { chatCall } from '../messages/streams.ts'
import {
  assistant,
  call,
  configOf,
  contentsOf,
  functionCall,
  functionResponse,
  HI,
  model,
  OPTIONS,
  offer,
  PNG,
  REDUCED,
  refused,
  sent,
  text,
  tool,
  user,
} from './requests.ts'
import { TO_GENERATE_CONTENT } from './streams.ts'

t.test('native request', async (t) => {
  // What is read, and the one change. See docs/api-rules.md, "Chat protocols" and "Protocols and translation".
  const SEED = 3
  const RUNS = 500
  const PATH = '/v1beta/models/ours:generateContent'
  const CONTENTS = '"contents":[{"role":"user","parts":[{"text":"hi"}]}]'

  const read = (body: string | Buffer, path = PATH, query = '') => readAtPath(path, query, Buffer.from(body))
  const wire = (body: string, options: Partial<EncodeOptions> = {}): string =>
    generateContentNative.encodeRequest(read(body), encodeOptions(options)).body.toString()

  t.test('model and stream from the path, decoded', async (t) => {
    const rows: readonly (readonly [path: string, model: string, stream: boolean])[] = [
      ['/v1beta/models/gemini-2.5-flash:generateContent', 'gemini-2.5-flash', false],
      ['/v1beta/models/gemini-2.5-flash:streamGenerateContent', 'gemini-2.5-flash', true],
      ['/v1beta/models/vendor%2Fmodel:generateContent', 'vendor/model', false],
      ['/v1beta/models/vendor/model:generateContent', 'vendor/model', false],
      ['/v1beta/models/models/x:generateContent', 'x', false],
      ['/v1beta/models/models%2Fx:generateContent', 'x', false],
      ['/v1beta/models/a:7b:streamGenerateContent', 'a:7b', true],
      ['/v1beta/models/x%3AstreamGenerateContent', 'x', true],
      ['/v1beta/models/%C3%BC:generateContent', 'ü', false],
      ['/v1/models/vendor/model:generateContent', 'vendor/model', false],
      ['/v1alpha/models/x%3AstreamGenerateContent', 'x', true],
    ]
    for (const [path, model, stream] of rows) t.match(read(`{${CONTENTS}}`, path), { model, stream }, path)
    const others = [
      ...['/v1beta/models/:generateContent', '/v1beta/models/models/:generateContent'],
      ...['/v2/models/x:generateContent', '/v1beta/models/x:toString'],
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
    t.equal(generateContentNative.streamContentType(read(`{${CONTENTS}}`)), null)
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
    for (const name of [
      'googleSearch',
      'google_search',
      'googleSearchRetrieval',
      'google_search_retrieval',
    ]) {
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
      t.equal(
        read(` { "${name}" : ${system}, "contents": ${contents} }`).promptBytes,
        bytes(contents, system),
      )
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
    refused(
      `{${CONTENTS},"systemInstruction":{},"system_instruction":{}}`,
      /'system_instruction'.*same field/,
    )
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
    refused(
      `{${CONTENTS},"generation_config":{"candidate_count":1.5}}`,
      /'generation_config.candidate_count'/,
    )
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
      fc.pre(
        scanJson(
          Buffer.from(sent),
          MAX_JSON_LEVELS,
          null,
          (tape) => findNameFault(tape, GENERATE_CONTENT_NAMES) === null,
        ) ?? false,
      )
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
})

t.test('conversation row by row', async (t) => {
  // Each row of the table has its test. See docs/translation.md, "The request".
  t.test('nothing but what was asked is sent: model and stream stand in the path', async (t) => {
    t.strictSame(
      sent({ model: 'x', stream: true, stream_options: {}, metadata: { a: '1' }, unknown: true }),
      {
        contents: [user({ text: 'Hi' })],
        dropped: ['unknown', 'metadata'],
      },
    )
  })

  t.test('every system and developer message: all of them, in order', async (t) => {
    const { systemInstruction, contents } = sent({
      messages: [
        { role: 'system', content: 'one' },
        HI,
        { role: 'developer', content: [text('two'), text(''), text('three')] },
        { role: 'system', content: '' },
      ],
    })
    t.strictSame(systemInstruction, { parts: [{ text: 'one' }, { text: 'two' }, { text: 'three' }] })
    t.strictSame(contents, [user({ text: 'Hi' })])
  })

  t.test('assistant / user / tool: neighbours merged, empty texts left out', async (t) => {
    const contents = contentsOf(
      HI,
      { role: 'user', content: [text(''), text('there')] },
      { role: 'assistant', content: 'A' },
      { role: 'assistant', content: [text('B'), { type: 'refusal', refusal: 'no' }] },
      { role: 'assistant', content: '' },
      { role: 'user', content: 'C' },
    )
    t.strictSame(contents, [
      user({ text: 'Hi' }, { text: 'there' }),
      model({ text: 'A' }, { text: 'B' }, { text: 'no' }),
      user({ text: 'C' }),
    ])
  })

  t.test('contents never empty, and no call first', async (t) => {
    const unsaid = user({ text: '.' })
    t.strictSame(contentsOf({ role: 'system', content: 'x' }), [unsaid])
    t.strictSame(contentsOf({ role: 'user', content: '' }), [unsaid])
    const called = contentsOf(assistant(call('1', 'a')), tool('1', 'x'))
    t.strictSame(called, [unsaid, model(functionCall('a')), user(functionResponse('a', { output: 'x' }))])
  })

  t.test('tool_calls: functionCall {name, args}, text before them', async (t) => {
    const contents = contentsOf(
      HI,
      {
        role: 'assistant',
        content: 'Let me see.',
        reasoning_content: 'Hm',
        thinking_blocks: [{ type: 'thinking', thinking: 'Hm', signature: 's' }],
        tool_calls: [call('1', 'a', '{"x":[1,null,"ü"]}'), call('2', 'b', ''), call('3', 'c', 'null')],
      },
      tool('1', 'r'),
      tool('2', 'r'),
      tool('3', 'r'),
    )
    t.strictSame(
      contents[1],
      model(
        { text: 'Let me see.' },
        functionCall('a', { x: [1, null, 'ü'] }),
        functionCall('b'),
        functionCall('c'),
      ),
    )
    for (const args of ['{', '[]', '1', '"x"'])
      refused(
        t,
        { messages: [HI, assistant(call('1', 'a', args))] },
        /'messages\[1\].tool_calls\[0\].function.arguments'/,
      )
  })

  t.test('thoughtSignature on the first call of a parallel group, from the previous turn', async (t) => {
    const signed = (thought_signature: unknown) => ({ extra_content: { google: { thought_signature } } })
    const messages = [
      HI,
      assistant(call('1', 'a', '{}', signed('c2ln')), call('2', 'b')),
      tool('1', 'x'),
      tool('2', 'x'),
    ]
    const expected = model({ ...functionCall('a'), thoughtSignature: 'c2ln' }, functionCall('b'))
    for (const upstreamModel of ['gemini-2.5-pro', 'gemini-3-pro-preview', 'other'])
      t.strictSame(sent({ messages }, { upstreamModel }).contents[1], expected, upstreamModel)
    const lost = [
      HI,
      assistant(call('1', 'a', '{}', signed(7)), call('2', 'b')),
      tool('1', 'x'),
      tool('2', 'x'),
    ]
    t.strictSame(sent({ messages: lost }).contents[1], model(functionCall('a'), functionCall('b')))
    t.strictSame(
      sent({ messages: lost }, { upstreamModel: 'models/gemini-3-flash' }).contents[1],
      model(
        { ...functionCall('a'), thoughtSignature: 'skip_thought_signature_validator' },
        functionCall('b'),
      ),
      'where a missing one is refused, the vendor’s own stand-in',
    )
  })

  t.test('tool message: the name looked up by tool_call_id, the latest call of that id', async (t) => {
    const contents = contentsOf(
      HI,
      assistant(call('same', 'first')),
      tool('same', 'x'),
      assistant(call('same', 'second')),
      tool('same', 'y'),
    )
    t.strictSame(contents[2], user(functionResponse('first', { output: 'x' })))
    t.strictSame(contents[4], user(functionResponse('second', { output: 'y' })))
    refused(t, { messages: [HI, tool('nobody', 'x')] }, /'messages\[1\].tool_call_id'/)
  })

  t.test(
    'tool message: a string is wrapped in an object, the text of an object is that object',
    async (t) => {
      const responseOf = (content: unknown) =>
        contentsOf(HI, assistant(call('1', 'a')), tool('1', content))[2].parts[0].functionResponse.response
      t.strictSame(responseOf('18 °C'), { output: '18 °C' })
      t.strictSame(responseOf([text('18'), text(' °C')]), { output: '18 °C' })
      t.strictSame(responseOf(''), { output: '' })
      t.strictSame(responseOf(null), { output: '' })
      t.strictSame(responseOf(' {"t": 18, "__proto__": 1}'), JSON.parse('{"t":18,"__proto__":1}'))
      for (const other of ['[1]', '18', 'null', '"x"', '{"t":'])
        t.strictSame(responseOf(other), { output: other })
    },
  )

  t.test('tool messages: in the order of the calls, before anything else of the turn', async (t) => {
    const contents = contentsOf(
      HI,
      assistant(call('1', 'a'), call('2', 'b'), call('3', 'c')),
      tool('3', 'z'),
      tool('1', 'x'),
      { role: 'user', content: 'well?' },
      tool('2', 'y'),
    )
    t.strictSame(
      contents[2],
      user(
        functionResponse('a', { output: 'x' }),
        functionResponse('b', { output: 'y' }),
        functionResponse('c', { output: 'z' }),
        { text: 'well?' },
      ),
    )
  })

  t.test('image data: becomes inlineData; so does a file', async (t) => {
    const image = (url: string) => ({ type: 'image_url', image_url: { url } })
    const inline = (mimeType: string) => ({ inlineData: { mimeType, data: PNG } })
    const content = [
      text('what?'),
      image(`data:image/png;base64,${PNG}`),
      image(`data:IMAGE/JPG;charset=x;base64,${PNG}`),
      { type: 'image_url', image_url: `data:image/webp;base64,${PNG}` },
      { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PNG}` } },
    ]
    const types = ['image/png', 'image/jpeg', 'image/webp', 'application/pdf']
    t.strictSame(contentsOf({ role: 'user', content }), [user({ text: 'what?' }, ...types.map(inline))])
    t.strictSame(
      contentsOf(
        HI,
        assistant(call('1', 'draw')),
        tool('1', [text('done'), image(`data:image/png;base64,${PNG}`)]),
      )[2],
      user(functionResponse('draw', { output: 'done' }), inline('image/png')),
      'from a tool too',
    )
    for (const url of ['data:image/png,abc', 'data:;base64,abc', 'data:nothing'])
      refused(
        t,
        { messages: [{ role: 'user', content: [image(url)] }] },
        /'messages\[0\].content\[0\].image_url.url'/,
      )
    const audio = { type: 'input_audio', input_audio: { data: '', format: 'mp3' } }
    refused(t, { messages: [{ role: 'user', content: [audio] }] }, /'messages\[0\].content\[0\]/)
  })

  t.test('image http(s): fetched by the gateway and inlined', async (t) => {
    const url = 'https://example.org/a.png'
    const image = (url: string) => ({ type: 'image_url', image_url: { url } })
    const body = {
      messages: [
        {
          role: 'user',
          content: [image(url), image('HTTP://example.org/b'), image(`data:image/png;base64,${PNG}`)],
        },
        { role: 'user', content: [image(url)] },
      ],
    }
    t.strictSame(TO_GENERATE_CONTENT.urlsToFetch(chatCall(body)), [url, 'http://example.org/b'])
    t.strictSame(TO_GENERATE_CONTENT.urlsToFetch(chatCall({ messages: [HI] })), [])
    const fetched = new Map([
      [url, { mediaType: 'image/png', base64: 'QQ==' }],
      ['http://example.org/b', { mediaType: 'image/jpeg', base64: 'Qg==' }],
    ])
    const a = { inlineData: { mimeType: 'image/png', data: 'QQ==' } }
    const b = { inlineData: { mimeType: 'image/jpeg', data: 'Qg==' } }
    const c = { inlineData: { mimeType: 'image/png', data: PNG } }
    t.strictSame(sent(body, { fetched }).contents, [user(a, b, c, a)])
    refused(t, body, /'messages\[0\].content\[0\].image_url.url'.*fetched/)
    for (const bad of [
      'ftp://example.org/a',
      'file:///etc/passwd',
      '/a.png',
      '',
      `https://e.org/${'a'.repeat(2048)}`,
    ]) {
      const call = chatCall({ messages: [{ role: 'user', content: [image(bad)] }] })
      t.throws(() => TO_GENERATE_CONTENT.urlsToFetch(call), {
        code: 'invalid_request',
        message: /image_url.url/,
      })
    }
  })

  t.test('a file whose server does not tell its type: by its bytes, else by its name', async (t) => {
    const JPEG = '/9j/4AAQ'
    const rows: readonly (readonly [path: string, mediaType: string, base64: string, mimeType: string])[] = [
      ['a', 'image/jpg', JPEG, 'image/jpeg'],
      ['a', '', PNG, 'image/png'],
      ['a.pdf', 'application/octet-stream', JPEG, 'image/jpeg'],
      ['a.pdf?size=1.5', 'binary/octet-stream', 'JVBERi0x', 'application/pdf'],
      ['a.pdf', 'image/png', JPEG, 'image/png'],
    ]
    for (const [path, mediaType, base64, mimeType] of rows) {
      const url = `https://example.org/${path}`
      const body = { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] }
      const { contents } = sent(body, { fetched: new Map([[url, { mediaType, base64 }]]) })
      t.strictSame(contents, [user({ inlineData: { mimeType, data: base64 } })], `${path} ${mediaType}`)
      const strange = { fetched: new Map([[url, { mediaType: '', base64: 'AAAA' }]]) }
      if (path === 'a')
        t.throws(() => sent(body, strange), { code: 'invalid_request', message: /does not tell/ })
    }
  })

  t.test('audio, video and files: inlineData, by URL as the gateway fetched it', async (t) => {
    const link = 'https://example.org/a.mp4'
    const content = [
      { type: 'input_audio', input_audio: { data: PNG, format: 'wav' } },
      { type: 'video_url', video_url: { url: `data:video/mp4;base64,${PNG}` } },
      { type: 'video_url', video_url: { url: link } },
      { type: 'file', file: { file_data: `data:application/pdf;base64,${PNG}` } },
      { type: 'file', file: { file_data: PNG, filename: 'a.csv' } },
      { type: 'file', file: { file_data: link } },
    ]
    const body = { messages: [{ role: 'user', content }] }
    t.same(TO_GENERATE_CONTENT.urlsToFetch(chatCall(body)), [link])
    const fetched = new Map([[link, { mediaType: 'video/mp4', base64: 'AAAA' }]])
    const inline = (mimeType: string, data = PNG) => ({ inlineData: { mimeType, data } })
    const video = inline('video/mp4', 'AAAA')
    t.strictSame(sent(body, { fetched }).contents, [
      user(
        inline('audio/wav'),
        inline('video/mp4'),
        video,
        inline('application/pdf'),
        inline('text/csv'),
        video,
      ),
    ])
    const strange = { type: 'input_audio', input_audio: { data: PNG, format: 'x' } }
    refused(
      t,
      { messages: [{ role: 'user', content: [strange] }] },
      /^Field 'messages\[0\]\.content\[0\]\.input_audio/,
    )
  })

  t.test('pictures of an earlier answer go back with the signature of their thought', async (t) => {
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }
    const signed = { ...image, extra_content: { google: { thought_signature: 'c2ln' } } }
    const inlineData = { mimeType: 'image/png', data: PNG }
    const contents = contentsOf(HI, { role: 'assistant', content: 'Here.', images: [image, signed] }, HI)
    t.strictSame(
      contents[1],
      model({ text: 'Here.' }, { inlineData }, { inlineData, thoughtSignature: 'c2ln' }),
    )
  })

  t.test('legacy function_call and function messages: a call and its response', async (t) => {
    const asked = { role: 'assistant', content: null, function_call: { name: 'a', arguments: '{"x":1}' } }
    const contents = contentsOf(HI, asked, { role: 'function', name: 'a', content: 'done' })
    t.strictSame(contents.slice(1), [
      model(functionCall('a', { x: 1 })),
      user(functionResponse('a', { output: 'done' })),
    ])
    refused(t, { messages: [{ role: 'function', name: 'a', content: 'x' }] }, /^Field 'messages\[0\]\.name'/)
  })
})

t.test('settings row by row', async (t) => {
  // Each row of the table has its test. See docs/translation.md, "The request".
  t.test(
    'tools: one tool with all functionDeclarations, a JSON Schema where the model takes it',
    async (t) => {
      const parameters = {
        type: 'object',
        properties: { a: { $ref: '#/$defs/A' } },
        additionalProperties: false,
        $defs: { A: { const: 1 } },
      }
      const { tools, dropped } = sent({
        tools: [offer('a', { description: 'does', parameters }), offer('b'), offer('c', { parameters: {} })],
      })
      t.strictSame(tools, [
        {
          functionDeclarations: [
            { name: 'a', description: 'does', parametersJsonSchema: parameters },
            { name: 'b' },
            { name: 'c' },
          ],
        },
      ])
      t.strictSame(dropped, [])
      refused(t, { tools: [{ type: 'function' }] }, /'tools\[0\].function'/)
    },
  )

  t.test('strict: calls held to their schemas by the mode VALIDATED', async (t) => {
    const tools = [offer('a', { strict: true }), offer('b')]
    const config = (tool_choice?: unknown) => {
      const { toolConfig, dropped } = sent({ tools, tool_choice })
      t.strictSame(dropped, [])
      return toolConfig.functionCallingConfig
    }
    t.strictSame(config(), { mode: 'VALIDATED' })
    t.strictSame(config('auto'), { mode: 'VALIDATED' })
    t.strictSame(config('required'), { mode: 'ANY' }, 'which holds them to it, too')
    t.strictSame(config(offer('b')), { mode: 'ANY', allowedFunctionNames: ['b'] })
    t.strictSame(config('none'), { mode: 'NONE' })
    t.match(
      sent({ tools }, REDUCED),
      { toolConfig: undefined, dropped: ['strict'] },
      'a model without the mode',
    )
    t.match(sent({ tools, tool_choice: 'auto' }, REDUCED).toolConfig, {
      functionCallingConfig: { mode: 'AUTO' },
    })
  })

  t.test('tools: else reduced to the subset', async (t) => {
    const parameters = {
      type: 'object',
      properties: {
        ref: { $ref: '#/$defs/A' },
        all: { allOf: [{ type: 'string' }, { minLength: 2 }] },
        only: { const: 'x' },
        maybe: { anyOf: [{ type: 'string' }, { type: 'null' }] },
      },
      required: ['ref'],
      additionalProperties: false,
      $defs: { A: { type: 'integer', exclusiveMinimum: 0 } },
    }
    const offered = [
      offer('a', { parameters }),
      offer('b', { parameters: { type: 'object', additionalProperties: true } }),
    ]
    t.strictSame(sent({ tools: offered }, REDUCED).tools, [
      {
        functionDeclarations: [
          {
            name: 'a',
            parameters: {
              type: 'OBJECT',
              properties: {
                ref: { type: 'INTEGER', minimum: 1 },
                all: { type: 'STRING', minLength: 2 },
                only: { type: 'STRING', enum: ['x'] },
                maybe: { type: 'STRING', nullable: true },
              },
              required: ['ref'],
            },
          },
          { name: 'b' },
        ],
      },
    ])
  })

  t.test('which models take JSON Schema', async (t) => {
    const parameters = { type: 'object', properties: { a: { type: 'string' } } }
    const takes = (upstreamModel: string): boolean =>
      'parametersJsonSchema' in
      sent({ tools: [offer('a', { parameters })] }, { upstreamModel }).tools[0].functionDeclarations[0]
    const newer = [
      ...['gemini-2.5-flash-lite', 'models/gemini-2.5-pro', 'gemini-3-pro-preview', 'gemini-3.1-flash'],
      ...['gemini-flash-latest', 'something-else', 'gemini-10-pro'],
    ]
    const older = [
      'gemini-2.0-flash',
      'gemini-2.0-flash-001',
      'gemini-1.5-pro-002',
      'google/gemini-1.5-flash-8b',
      'gemma-3-27b-it',
    ]
    for (const name of newer) t.ok(takes(name), name)
    for (const name of older) t.notOk(takes(name), name)
  })

  t.test('tool_choice auto / none / required / a function', async (t) => {
    const tools = [offer('a'), offer('b')]
    const config = (tool_choice: unknown) => sent({ tools, tool_choice }).toolConfig?.functionCallingConfig
    t.strictSame(config('auto'), { mode: 'AUTO' })
    t.strictSame(config('none'), { mode: 'NONE' })
    t.strictSame(config('required'), { mode: 'ANY' })
    t.strictSame(config({ type: 'function', function: { name: 'b' } }), {
      mode: 'ANY',
      allowedFunctionNames: ['b'],
    })
    t.strictSame(config(undefined), undefined)
    t.strictSame(config(null), undefined)
    t.notOk('toolConfig' in sent({ tool_choice: 'none' }), 'a choice among none is refused upstream')
    for (const [mode, expected] of [
      ['auto', 'AUTO'],
      ['required', 'ANY'],
    ]) {
      const tool_choice = { type: 'allowed_tools', allowed_tools: { mode, tools: [offer('b')] } }
      const { tools: offered, toolConfig } = sent({ tools, tool_choice })
      t.strictSame(toolConfig.functionCallingConfig, { mode: expected })
      t.strictSame(offered, [{ functionDeclarations: [{ name: 'b' }] }])
    }
    refused(t, { tools, tool_choice: 'any' }, /'tool_choice'/)
  })

  t.test('max_tokens, stop, n, seed, temperature, top_p, penalties in generationConfig', async (t) => {
    const body = {
      temperature: 1.7,
      top_p: 0.5,
      n: 3,
      seed: 42,
      stop: ['a', 'b'],
      presence_penalty: -1,
      frequency_penalty: 1.5,
    }
    t.strictSame(sent(body, REDUCED, { outputLimit: 77 }), {
      contents: [user({ text: 'Hi' })],
      generationConfig: {
        maxOutputTokens: 77,
        temperature: 1.7,
        topP: 0.5,
        candidateCount: 3,
        seed: 42,
        presencePenalty: -1,
        frequencyPenalty: 1.5,
        stopSequences: ['a', 'b'],
      },
      dropped: [],
    })
    const { presence_penalty, frequency_penalty } = body
    for (const upstreamModel of ['gemini-2.5-pro', 'gemini-3.8-flash', 'gemini-flash-latest']) {
      const current = sent({ presence_penalty, frequency_penalty, seed: 42 }, { upstreamModel })
      t.match(current, { generationConfig: { seed: 42 } })
      t.strictSame(current.dropped, [
        'presence_penalty (this model has no such setting)',
        'frequency_penalty (this model has no such setting)',
      ])
      const zeros = sent({ presence_penalty: 0, frequency_penalty: 0 }, { upstreamModel })
      t.match(zeros, { generationConfig: undefined, dropped: { length: 0 } })
    }
    t.strictSame(configOf({ n: 1, stop: 'x', seed: 2 ** 31 + 5 }), { seed: 5, stopSequences: ['x'] })
    const nothing = {
      temperature: null,
      top_p: null,
      n: null,
      seed: null,
      stop: null,
      response_format: null,
      tools: null,
    }
    t.strictSame(sent(nothing), { contents: [user({ text: 'Hi' })], dropped: [] })
    refused(t, { top_p: 'x' }, /'top_p'/)
    refused(t, { seed: 1.5 }, /'seed'/)
  })

  t.test('max_tokens: the client’s, else the model’s ceiling, else none', async (t) => {
    t.strictSame(configOf({}, { outputCeiling: 8192 }), { maxOutputTokens: 8192 })
    t.strictSame(sent({}, { outputCeiling: 8192 }, { outputLimit: 5 }).generationConfig, {
      maxOutputTokens: 5,
    })
    t.strictSame(configOf({}), undefined)
  })

  t.test('stop: at most 5, none empty, and what is left out is named', async (t) => {
    const { generationConfig, dropped } = sent({ stop: ['a', '', 'b', 'c', 'd', 'e', 'f', 'g'] })
    t.strictSame(generationConfig, { stopSequences: ['a', 'b', 'c', 'd', 'e'] })
    t.equal(dropped.length, 2)
    for (const name of dropped) t.match(name, /^stop \(/)
    t.strictSame(sent({ stop: '' }).dropped, ['stop (empty sequences)'])
  })

  t.test('response_format json_object / json_schema', async (t) => {
    const json = { responseMimeType: 'application/json' }
    const schema = {
      type: 'object',
      properties: { a: { type: ['integer', 'null'] } },
      additionalProperties: false,
    }
    const response_format = { type: 'json_schema', json_schema: { name: 'x', strict: true, schema } }
    t.strictSame(configOf({ response_format: { type: 'json_object' } }), json)
    t.strictSame(configOf({ response_format }), { ...json, responseJsonSchema: schema })
    t.strictSame(configOf({ response_format: { type: 'json_schema', json_schema: { name: 'x' } } }), json)
    t.strictSame(configOf({ response_format: { type: 'text' } }), undefined)
    t.strictSame(configOf({ response_format }, REDUCED), {
      ...json,
      responseSchema: { type: 'OBJECT', properties: { a: { type: 'INTEGER', nullable: true } } },
    })
    refused(t, { response_format: { type: 'grammar' } }, /'response_format/)
  })

  t.test('response_format beside tools, where the model takes the two together', async (t) => {
    const response_format = { type: 'json_object' }
    const [functions, search] = [[offer('a')], [{ type: 'web_search' }]]
    const formatOf = (body: object, upstreamModel: string) => {
      const { generationConfig, dropped } = sent({ response_format, ...body }, { upstreamModel })
      return [generationConfig?.responseMimeType, ...dropped]
    }
    for (const upstreamModel of ['gemini-2.0-flash', 'gemini-2.5-pro'])
      for (const tools of [functions, search])
        t.strictSame(formatOf({ tools }, upstreamModel), [
          undefined,
          'response_format (not together with tools for this model)',
        ])
    for (const tools of [functions, search, [...functions, ...search]])
      t.strictSame(formatOf({ tools }, 'gemini-3-flash'), ['application/json'])
    for (const tool_choice of ['required', offer('a')])
      t.strictSame(formatOf({ tools: functions, tool_choice }, 'gemini-3-flash'), [
        undefined,
        'response_format (not together with a forced tool_choice)',
      ])
    t.strictSame(formatOf({ tools: [] }, 'gemini-2.5-pro'), ['application/json'])
  })

  t.test('top_k, logprobs and top_logprobs in generationConfig', async (t) => {
    t.strictSame(configOf({ top_k: 40 }), { topK: 40 })
    t.strictSame(configOf({ top_k: 0 }), undefined)
    t.strictSame(configOf({ logprobs: true }), { responseLogprobs: true })
    t.strictSame(configOf({ logprobs: true, top_logprobs: 3 }), { responseLogprobs: true, logprobs: 3 })
    t.match(sent({ top_logprobs: 3 }), { generationConfig: undefined, dropped: [/^top_logprobs \(/] })
  })

  t.test('modalities and audio: responseModalities and speechConfig', async (t) => {
    t.strictSame(configOf({ modalities: ['text', 'image'] }), { responseModalities: ['TEXT', 'IMAGE'] })
    t.strictSame(configOf({ modalities: ['text'] }), undefined)
    const spoken = { modalities: ['text', 'audio'], audio: { voice: 'Kore', format: 'pcm16' } }
    t.strictSame(sent(spoken), {
      contents: [user({ text: 'Hi' })],
      generationConfig: {
        responseModalities: ['AUDIO'],
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } },
      },
      dropped: [],
    })
    t.match(sent({ ...spoken, audio: { voice: 'Kore', format: 'mp3' } }), {
      generationConfig: undefined,
      dropped: [/^audio \(.*pcm16/, 'modalities (only text)'],
    })
    t.match(sent({ audio: spoken.audio }), { generationConfig: undefined, dropped: [/^audio \(/] })
    t.match(sent({ modalities: ['smell'] }), { generationConfig: undefined, dropped: ['modalities'] })
  })

  t.test('legacy functions and function_call', async (t) => {
    t.match(sent({ functions: [{ name: 'a' }], function_call: { name: 'a' } }), {
      tools: [{ functionDeclarations: [{ name: 'a' }] }],
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['a'] } },
      dropped: { length: 0 },
    })
  })

  t.test('a choice among no functions is named', async (t) => {
    t.match(sent({ tools: [{ type: 'web_search' }], tool_choice: 'required' }).dropped, [/^tool_choice \(/])
    t.same(sent({ tool_choice: 'none' }).dropped, [])
  })

  t.test('drop: logit_bias, user, parallel_tool_calls, the image_generation tool', async (t) => {
    const body = {
      logit_bias: { 5: 1 },
      user: 'u',
      parallel_tool_calls: false,
      tools: [{ type: 'image_generation' }, { type: 'mystery' }],
    }
    t.strictSame(sent(body), {
      contents: [user({ text: 'Hi' })],
      dropped: ['logit_bias', 'parallel_tool_calls', 'user', 'image_generation', 'tools[1]'],
    })
    t.strictSame(sent({ logit_bias: null, user: null, parallel_tool_calls: null }).dropped, [])
  })

  t.test('web_search becomes the upstream’s own search', async (t) => {
    const tools = [{ type: 'web_search' }, offer('a')]
    t.strictSame(sent({ tools, tool_choice: 'auto' }, { upstreamModel: 'gemini-3-flash' }), {
      contents: [user({ text: 'Hi' })],
      tools: [{ functionDeclarations: [{ name: 'a' }] }, { googleSearch: {} }],
      toolConfig: { functionCallingConfig: { mode: 'VALIDATED' }, includeServerSideToolInvocations: true },
      dropped: [],
    })
    const configFor = (body: object, provider?: 'vertex') =>
      sent({ tools, ...body }, { upstreamModel: 'gemini-3.5-flash', provider }).toolConfig
    const shown = { includeServerSideToolInvocations: true }
    t.strictSame(configFor({}), { functionCallingConfig: { mode: 'VALIDATED' }, ...shown })
    t.strictSame(configFor({ tool_choice: 'required' }), { functionCallingConfig: { mode: 'ANY' }, ...shown })
    t.strictSame(
      configFor({}, 'vertex'),
      { functionCallingConfig: { mode: 'VALIDATED' } },
      'which lacks the field',
    )
    for (const upstreamModel of ['gemini-2.5-pro', 'gemini-2.0-flash']) {
      const { tools: offered, dropped } = sent({ tools }, { upstreamModel })
      t.strictSame(offered, [{ functionDeclarations: [{ name: 'a' }] }], 'they refuse the two together')
      t.same(dropped, ['web_search (not together with functions for this model)'])
    }
  })

  t.test('a tool_choice that leaves out the search leaves it out', async (t) => {
    const search = { type: 'web_search' }
    const chosen = (body: object) => sent(body, { upstreamModel: 'gemini-3-flash' })
    t.strictSame(chosen({ tools: [search], tool_choice: 'none' }), {
      contents: [user({ text: 'Hi' })],
      dropped: [],
    })
    const functions = [{ functionDeclarations: [{ name: 'a' }] }]
    const allowed_tools = { mode: 'auto', tools: [{ type: 'function', function: { name: 'a' } }] }
    for (const tool_choice of ['none', { type: 'allowed_tools', allowed_tools }]) {
      const { tools, dropped } = chosen({ tools: [search, offer('a')], tool_choice })
      t.strictSame([tools, dropped], [functions, []])
    }
  })

  t.test('a seed of more digits than a float keeps', async (t) => {
    t.equal(configOf({ seed: 2 ** 62 }).seed, 0)
    refused(t, { seed: 1.5 }, /'seed'/)
  })

  t.test('what cannot be printed again is refused', async (t) => {
    const depth = 20_000
    const deep = '['.repeat(depth) + ']'.repeat(depth)
    t.throws(() => JSON.stringify(JSON.parse(deep)), RangeError)
    const tool = `{"type":"function","function":{"name":"a","parameters":{"properties":{"a":${deep}}}}}`
    const body = Buffer.from(`{"messages":[{"role":"user","content":"x"}],"tools":[${tool}]}`)
    const call = chatCall({}, { source: { body, request: {} } })
    t.throws(() => TO_GENERATE_CONTENT.encodeRequest(call, OPTIONS), {
      code: 'invalid_request',
      message: /deeper than 512 levels/,
    })
  })
})

t.test('reasoning as each generation takes it', async (t) => {
  // Reasoning is asked for as each generation of models takes it. See docs/translation.md, "The request".
  t.test(
    'reasoning_effort: thinkingBudget, or thinkingLevel where the model has it; never both',
    async (t) => {
      const thinking = (reasoning_effort: string, upstreamModel: string) =>
        configOf({ reasoning_effort }, { upstreamModel })?.thinkingConfig
      const rows: readonly (readonly [model: string, effort: string, expected: object])[] = [
        ['gemini-2.5-flash', 'low', { thinkingBudget: 1024 }],
        ['gemini-2.5-flash', 'medium', { thinkingBudget: 8192 }],
        ['gemini-2.5-flash', 'high', { thinkingBudget: 24_576 }],
        ['gemini-2.5-flash', 'none', { thinkingBudget: 0 }],
        ['gemini-2.5-pro', 'none', { thinkingBudget: 128 }],
        ['gemini-flash-latest', 'minimal', { thinkingBudget: 1024 }],
        ['gemini-3-flash-preview', 'none', { thinkingLevel: 'minimal' }],
        ['gemini-3-flash-preview', 'minimal', { thinkingLevel: 'minimal' }],
        ['gemini-3-flash-preview', 'medium', { thinkingLevel: 'medium' }],
        ['gemini-3-pro-preview', 'minimal', { thinkingLevel: 'low' }],
        ['gemini-3-pro-preview', 'medium', { thinkingLevel: 'high' }],
        ['gemini-3.5-flash', 'none', { thinkingLevel: 'minimal' }],
        ['gemini-3.5-flash-lite', 'none', { thinkingLevel: 'minimal' }],
        ['gemini-3.7-flash', 'none', { thinkingLevel: 'low' }],
        ['gemini-3.10-flash', 'minimal', { thinkingLevel: 'low' }],
        ['gemini-3.8-flash-lite', 'minimal', { thinkingLevel: 'minimal' }],
        ['gemini-3.10-pro', 'medium', { thinkingLevel: 'medium' }],
        ['gemini-3.1-pro', 'medium', { thinkingLevel: 'medium' }],
        ['gemini-3.1-pro', 'xhigh', { thinkingLevel: 'high' }],
        ['gemini-3.1-pro', 'max', { thinkingLevel: 'high' }],
        ['gemini-2.5-flash', 'max', { thinkingBudget: 24_576 }],
      ]
      for (const [name, effort, expected] of rows) {
        const shown = effort === 'none' ? {} : { includeThoughts: true }
        t.strictSame(thinking(effort, name), { ...expected, ...shown }, `${name}, ${effort}`)
      }
      t.strictSame(
        sent({ reasoning_effort: 'low' }, REDUCED).dropped,
        ['reasoning_effort'],
        'a model that does not think',
      )
      t.strictSame(sent({ reasoning_effort: 'none' }, REDUCED).dropped, [])
      t.strictSame(sent({ reasoning_effort: 'toString' }), {
        contents: [user({ text: 'Hi' })],
        dropped: ['reasoning_effort'],
      })
    },
  )

  t.test('reasoning turned off is the least of models that always reason, and named', async (t) => {
    const named = ['reasoning_effort (this model always reasons: it is asked for the least)']
    for (const upstreamModel of ['gemini-2.5-pro', 'gemini-3-pro-preview', 'gemini-3.7-flash'])
      t.strictSame(sent({ reasoning_effort: 'none' }, { upstreamModel }).dropped, named, upstreamModel)
    for (const upstreamModel of ['gemini-2.5-flash', 'gemini-3-flash-preview', 'gemini-2.0-flash'])
      t.strictSame(sent({ reasoning_effort: 'none' }, { upstreamModel }).dropped, [], upstreamModel)
    for (const effort of ['minimal', 'low'])
      t.strictSame(sent({ reasoning_effort: effort }, { upstreamModel: 'gemini-3.7-flash' }).dropped, [])
  })

  t.test('thinking, reasoning and enable_thinking say what reasoning_effort says', async (t) => {
    const rows: readonly (readonly [model: string, body: object, expected: object | undefined])[] = [
      ['gemini-2.5-flash', { thinking: { type: 'enabled', budget_tokens: 300 } }, { thinkingBudget: 300 }],
      ['gemini-2.5-pro', { thinking: { type: 'enabled', budget_tokens: 5 } }, { thinkingBudget: 128 }],
      ['gemini-3-flash', { thinking: { type: 'enabled', budget_tokens: 300 } }, { thinkingBudget: 300 }],
      ['gemini-2.5-flash', { thinking: { type: 'adaptive' } }, { thinkingBudget: -1 }],
      ['gemini-3-flash', { reasoning: { enabled: true } }, { thinkingLevel: 'medium' }],
      ['gemini-3-flash', { enable_thinking: true, thinking_budget: 99 }, { thinkingBudget: 99 }],
    ]
    for (const [upstreamModel, body, expected] of rows) {
      const { generationConfig, dropped } = sent(body, { upstreamModel })
      t.strictSame(
        generationConfig.thinkingConfig,
        { ...expected, includeThoughts: true },
        JSON.stringify(body),
      )
      t.same(dropped, [])
    }
    t.strictSame(configOf({ thinking: { type: 'disabled' } }), { thinkingConfig: { thinkingBudget: 0 } })
    t.strictSame(configOf({ reasoning: { effort: 'low', exclude: true } }), {
      thinkingConfig: { thinkingBudget: 1024 },
    })
    t.strictSame(sent({ thinking: { type: 'enabled' } }, REDUCED).dropped, ['thinking'])
    t.strictSame(sent({ thinking: { type: 'disabled' } }, REDUCED).dropped, [])
  })
})

t.test('takes every translated request', async (t) => {
  // What holds of every request. The simulated upstream, as strict as the vendor, says whether a translation would have
  // been taken. See docs/translation.md, "The request".
  const SEED = 35
  const RUNS = 600
  const MODELS = ['gemini-2.0-flash', 'gemini-2.5-pro', 'gemini-3-flash', 'other']
  const URL = 'https://example.org/a.png'
  const PNG = 'data:image/png;base64,iVBORw0KGgo='

  const optionsFor = (upstreamModel: string) =>
    encodeOptions({
      upstreamModel,
      fetched: new Map([[URL, { mediaType: 'image/png', base64: 'iVBORw0KGgo=' }]]),
    })

  const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null })
  const text = fc.oneof(
    fc.constantFrom('', ' ', '{"a":1}', '\u0000', '😀', '["x"]'),
    fc.string({ unit: ANY_CHARACTER, maxLength: 8 }),
  )
  const textPart = text.map((text) => ({ type: 'text', text }))
  const userPart = fc.oneof(
    textPart,
    fc.constantFrom(PNG, URL).map((url) => ({ type: 'image_url', image_url: { url } })),
    fc.constantFrom(PNG, URL).map((file_data) => ({ type: 'file', file: { file_data } })),
    fc.constant({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }),
    fc.constantFrom(PNG, URL).map((video_url) => ({ type: 'video_url', video_url })),
  )
  const content = (part: fc.Arbitrary<object>) => fc.oneof(text, fc.array(part, { maxLength: 3 }))
  const name = fc.constantFrom('a', 'look_up', 'b-2')
  const called = fc.record({
    name,
    arguments: fc.constantFrom('', '{}', '{"x":{"y":[1,null]}}'),
    answer: content(textPart),
    signature: fc.constantFrom(undefined, 'c2ln'),
  })

  /** One turn: what was said, or calls with their answers in any order. Ids repeat from turn to turn. */
  const turn = fc.oneof(
    fc.record({ role: fc.constantFrom('system', 'developer'), content: content(textPart) }).map((m) => [m]),
    fc.record({ role: fc.constant('user'), content: content(userPart) }).map((m) => [m]),
    fc
      .record({ role: fc.constant('assistant'), content: maybe(content(textPart)), refusal: maybe(text) })
      .map((m) => [m]),
    fc
      .tuple(fc.array(called, { minLength: 1, maxLength: 3 }), maybe(text), fc.boolean())
      .map(([calls, said, isReversed]) => {
        const tool_calls = calls.map((call, index) => ({
          id: `call_${index}`,
          type: 'function',
          function: { name: call.name, arguments: call.arguments },
          extra_content: { google: { thought_signature: call.signature } },
        }))
        const answers = calls.map(({ answer }, index) => ({
          role: 'tool',
          tool_call_id: `call_${index}`,
          content: answer,
        }))
        return [
          { role: 'assistant', content: said, tool_calls },
          ...(isReversed ? answers.reverse() : answers),
          // Two groups of calls with nothing between them would be one.
          { role: 'assistant', content: 'Done.' },
          { role: 'user', content: 'Go on.' },
        ]
      }),
  )

  const schema = fc.constantFrom<object | null>(
    null,
    {},
    { type: 'object', properties: {} },
    { type: 'object', additionalProperties: { type: 'string' } },
    {
      type: 'object',
      properties: {
        a: { $ref: '#/$defs/A' },
        b: { type: ['string', 'null'], enum: ['x', null] },
        c: { type: 'array' },
      },
      required: ['a', 'z'],
      additionalProperties: false,
      $defs: { A: { anyOf: [{ $ref: '#/$defs/A' }, { const: 3 }, { type: 'string', format: 'email' }] } },
    },
  )
  const tools = fc.uniqueArray(
    fc.record({
      type: fc.constantFrom('function', 'web_search', 'image_generation'),
      function: fc.record({
        name,
        description: maybe(text),
        parameters: schema,
        strict: maybe(fc.boolean()),
      }),
    }),
    { maxLength: 3, selector: (tool) => tool.function.name },
  )
  const request = fc.record({
    model: fc.constant('ours'),
    messages: fc.array(turn, { minLength: 1, maxLength: 4 }).map((turns) => turns.flat()),
    stream: maybe(fc.boolean()),
    max_tokens: maybe(fc.integer({ min: 1, max: 9999 })),
    temperature: maybe(fc.double({ min: 0, max: 2, noNaN: true })),
    top_p: maybe(fc.double({ min: 0, max: 1, noNaN: true })),
    n: maybe(fc.integer({ min: 1, max: 8 })),
    seed: maybe(fc.maxSafeInteger()),
    stop: maybe(fc.oneof(text, fc.array(text, { maxLength: 7 }))),
    presence_penalty: maybe(fc.double({ min: -2, max: 2, noNaN: true })),
    tools: maybe(tools),
    tool_choice: maybe(fc.constantFrom<unknown>('auto', 'none', 'required')),
    parallel_tool_calls: maybe(fc.boolean()),
    reasoning_effort: maybe(fc.constantFrom('none', 'minimal', 'low', 'medium', 'high', 'xhigh', '?')),
    response_format: maybe(
      fc.oneof(
        fc.constantFrom<object>({ type: 'text' }, { type: 'json_object' }),
        schema.map((schema) => ({ type: 'json_schema', json_schema: { name: 'x', schema } })),
      ),
    ),
    user: maybe(text),
    logit_bias: maybe(fc.constant({ '1': 2 })),
    top_k: maybe(fc.integer({ min: -1, max: 40 })),
    logprobs: maybe(fc.boolean()),
    top_logprobs: maybe(fc.integer({ min: 0, max: 20 })),
    modalities: maybe(fc.subarray(['text', 'image', 'audio', '?'])),
    audio: maybe(fc.constantFrom({ voice: 'a', format: 'pcm16' }, { voice: { name: 'b' }, format: 'mp3' })),
    thinking: maybe(
      fc.constantFrom<unknown>({ type: 'adaptive' }, { type: 'enabled', budget_tokens: 99 }, '?'),
    ),
    reasoning: maybe(fc.constantFrom({ effort: 'low', exclude: true }, { max_tokens: 0 }, { enabled: true })),
    functions: maybe(fc.constantFrom<unknown[]>([], [{ name: 'legacy' }])),
  })

  const REFUSALS: ReadonlySet<string> = new Set(['invalid_request', 'tool_not_supported'])

  t.test('the upstream takes every translation of a conversation that hangs together', async (t) => {
    everyRun(
      t,
      { seed: SEED, numRuns: RUNS },
      [request, fc.constantFrom(...MODELS)],
      (body, upstreamModel) => {
        const call = readChatCall(Buffer.from(JSON.stringify(body)))
        const urls = TO_GENERATE_CONTENT.urlsToFetch(call)
        if (urls.length > 1 || (urls[0] ?? URL) !== URL) throw new Error(`to fetch: ${urls}`)
        const { body: sent, dropped } = TO_GENERATE_CONTENT.encodeRequest(call, optionsFor(upstreamModel))
        readGenerateContent(sent, upstreamModel)
        if (body.user && !dropped.includes('user')) throw new Error('user was dropped in silence')
        for (const text of dropped)
          if (!/^[\x20-\x7e]+$/.test(text)) throw new Error(`no header text: ${text}`)
      },
    )
  })

  t.test('whatever a valid request holds, it is translated, or refused with the field’s name', async (t) => {
    const fields = fc.dictionary(
      fc.constantFrom(
        ...[
          'content',
          'tool_calls',
          'tool_call_id',
          'name',
          'refusal',
          'thinking_blocks',
          'type',
          'text',
          'image_url',
        ],
        ...[
          'function',
          'arguments',
          'id',
          'extra_content',
          'google',
          'thought_signature',
          'url',
          'parameters',
        ],
      ),
      fc.oneof(
        fc.jsonValue({ maxDepth: 2 }),
        fc.constantFrom('a', '{}', 'function', 'text', 'image_url', PNG),
      ),
      { maxKeys: 5, noNullPrototype: true },
    )
    const message = fields.chain((more) =>
      fc.constantFrom('system', 'user', 'assistant', 'tool').map((role) => ({ ...more, role })),
    )
    const loose = fc.record(
      {
        messages: fc.array(message, { minLength: 1, maxLength: 3 }),
        tools: fc.array(fields),
        tool_choice: fc.oneof(fields, fc.string({ maxLength: 4 })),
        response_format: fields,
        stop: fc.jsonValue({ maxDepth: 1 }),
        seed: fc.jsonValue({ maxDepth: 0 }),
        reasoning_effort: fc.jsonValue({ maxDepth: 0 }),
        user: fc.jsonValue({ maxDepth: 1 }),
      },
      { requiredKeys: ['messages'] },
    )
    const outcomes = { translated: 0, refused: 0 }
    everyRun(t, { seed: SEED, numRuns: RUNS }, [fc.oneof(loose, request), fields], (body, more) => {
      const mixed = { ...body, ...more, model: 'ours' }
      try {
        const call = readChatCall(Buffer.from(JSON.stringify(mixed)))
        TO_GENERATE_CONTENT.urlsToFetch(call)
        JSON.parse(TO_GENERATE_CONTENT.encodeRequest(call, optionsFor('gemini-2.0-flash')).body.toString())
        outcomes.translated++
      } catch (error) {
        if (!(error instanceof Failure) || !REFUSALS.has(error.code)) throw error
        if (
          !/^(Field '[^']+'|The request body|The tool type '.*') is not (valid: .|known; .)/s.test(
            error.message,
          )
        )
          throw error
        outcomes.refused++
      }
    })
    t.ok(outcomes.translated > RUNS / 10, `${outcomes.translated} translated`)
    t.ok(outcomes.refused > RUNS / 10, `${outcomes.refused} refused`)
  })
})

t.test('counts tokens', async (t) => {
  // A request to count tokens names its model in the path, and once more where it holds a whole request.
  const CONTENTS = '"contents" : [{"role":"user", "parts":[{"text":"h\\u00e9llo"}]}]'
  const read = (body: string, path = '/v1beta/models/ours:countTokens') =>
    readAtPath(path, '', Buffer.from(body))
  const counted = (body: string, upstreamModel = 'theirs') => countBody(read(body), upstreamModel).toString()

  t.test('contents alone are passed on byte for byte', async (t) => {
    const body = `{ ${CONTENTS} , "other":1e400}`
    t.equal(counted(body), body)
    t.equal(read(body).model, 'ours')
    t.equal(read(body, '/v1beta/models/org%2Fours%3AcountTokens').model, 'org/ours')
  })

  t.test(
    'in a whole request the model is named as the upstream does, and nothing else changes',
    async (t) => {
      const whole = (name: string, model: string) => `{"${name}": {${model} ${CONTENTS},"tools":[{"x":1}] } }`
      for (const name of ['generateContentRequest', 'generate_content_request'])
        for (const model of ['', '"model":"models/ours",', '"model": "ours" ,'])
          for (const [upstream, resource] of [
            ['theirs', 'models/theirs'],
            ['tunedModels/t', 'tunedModels/t'],
          ] as const) {
            const sent = JSON.parse(counted(whole(name, model), upstream))
            const asked = JSON.parse(whole(name, model))
            t.strictSame(sent, { [name]: { ...asked[name], model: resource } })
          }
      const exact = counted(`{"generateContentRequest":{"model": "ours" , ${CONTENTS}}}`)
      t.equal(exact, `{"generateContentRequest":{"model": "models/theirs" , ${CONTENTS}}}`)
    },
  )

  t.test('what could be read in two ways is refused', async (t) => {
    const refused: readonly (readonly [body: string, message: RegExp])[] = [
      ['', /empty/],
      ['{', /JSON/],
      ['[]', /body/],
      ['{}', /'contents'/],
      ['{"contents":[]}', /'contents'/],
      ['{"contents":7}', /'contents'/],
      [`{${CONTENTS},${CONTENTS}}`, /'contents'.*more than once/],
      [`{${CONTENTS},"generateContentRequest":{${CONTENTS}}}`, /'generateContentRequest'.*with 'contents'/],
      [
        `{"generate_content_request":{${CONTENTS}},"generateContentRequest":{${CONTENTS}}}`,
        /given together with/,
      ],
      ['{"generateContentRequest":{}}', /'generateContentRequest\.contents'/],
      [`{"generateContentRequest":{"model":"models/dear",${CONTENTS}}}`, /not the model that the path names/],
      [
        `{"generateContentRequest":{"model":"ours","model":"dear",${CONTENTS}}}`,
        /'generateContentRequest\.model'/,
      ],
    ]
    for (const [body, message] of refused)
      t.throws(() => read(body), { code: 'invalid_request', message }, body)
    for (const path of ['/v1beta/models/:countTokens', '/v1beta/models/models/:countTokens'])
      t.throws(() => read(`{${CONTENTS}}`, path), { code: 'not_found' }, path)
  })
})
