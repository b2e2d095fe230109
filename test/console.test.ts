/** The parts of the console that need no browser. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { printCurl } from '../console/src/curl.ts'
import { fillIn, parseAmount, printAmount, printExact } from '../console/src/format.ts'
import { findChanges, type Key, toValues } from '../console/src/pages/keys/values.ts'
import { NO_ANSWER, withChunk } from '../console/src/pages/playground/answer.ts'
import {
  computeCost,
  computeCostAfter,
  measurePrompt,
  readPrice,
} from '../console/src/pages/playground/cost.ts'
import { makeBody, readTools, type Settings } from '../console/src/pages/playground/request.ts'
import { printSearch, readSearch, validateTexts } from '../console/src/search.ts'
import { printCredits } from '../schemas/money.ts'
import { TYPED_TO_CONFIRM } from '../src/core/confirmation.ts'
import { readText, sourceFiles } from './support/source-files.ts'
import { readTypeScale } from './support/type-scale.ts'

t.test('a key form sends what changed', async (t) => {
  // The form of a key sends what its user changed, and nothing of what only looks like its text.
  /** What the browser keeps of the reader's choice. */
  let zone: 'local' | 'utc' = 'local'
  Object.defineProperty(globalThis, 'localStorage', { value: { getItem: () => zone } })
  process.env.TZ = 'America/New_York'

  const KEY = {
    name: 'Web',
    allowed_models: [],
    expires_at: '2026-12-01T12:00:30.000Z',
    spend_cap: null,
    account_logs: false,
    requests_per_minute: 60,
    concurrency: null,
    allowed_addresses: ['10.0.0.0/8'],
    max_price: '2.5',
  } as unknown as Key

  t.test('another name changes the name alone', async (t) => {
    const before = toValues(KEY)
    t.same(findChanges(before, before), {})
    t.same(findChanges(before, { ...before, name: 'Site' }), { name: 'Site' })
  })

  t.test('each field is sent as the API takes it', async (t) => {
    const before = toValues({ ...KEY, spend_cap: '5' })
    t.same(findChanges(before, { ...before, allowed_models: ['fast', 'large'] }), {
      allowed_models: ['fast', 'large'],
    })
    t.same(findChanges(before, { ...before, allowed_models: null }), { allowed_models: null })
    t.same(findChanges(before, { ...before, expires_at: '' }), { expires_at: null })
    t.same(findChanges(before, { ...before, spend_cap: '7.5' }), { spend_cap: '7.5' })
    t.same(findChanges(before, { ...before, account_logs: true }), { account_logs: true })
    t.same(findChanges(before, { ...before, requests_per_minute: '' }), { requests_per_minute: null })
    t.same(findChanges(before, { ...before, concurrency: '4' }), { concurrency: 4 })
    t.same(findChanges(before, { ...before, allowed_addresses: '' }), { allowed_addresses: null })
    t.same(findChanges(before, { ...before, max_price: '' }), { max_price: null })
  })

  t.test('a key that may call no model is not one that may call every model', async (t) => {
    const before = toValues(KEY)
    t.same(before.allowed_models, [])
    t.same(findChanges(before, { ...before, allowed_models: null }), { allowed_models: null })
    const every = toValues({ ...KEY, allowed_models: null })
    t.same(findChanges(every, { ...every, allowed_models: [] }), { allowed_models: [] })
  })

  t.test('an end is shown and typed in the time zone of the reader', async (t) => {
    const before = toValues(KEY)
    t.equal(before.expires_at, '2026-12-01T07:00')
    t.same(findChanges(before, { ...before, expires_at: '2026-12-02T07:00' }), {
      expires_at: '2026-12-02T12:00:00.000Z',
    })
    zone = 'utc'
    const inUtc = toValues(KEY)
    t.equal(inUtc.expires_at, '2026-12-01T12:00')
    t.same(findChanges(inUtc, { ...inUtc, expires_at: '2026-12-02T07:00' }), {
      expires_at: '2026-12-02T07:00:00.000Z',
    })
  })
})

t.test('text uses only the sizes of the declared scale', (t) => {
  const names = Object.keys(readTypeScale())
  t.same(names, ['xs', 'sm', 'base', 'lg', 'xl', '2xl'])
  const strange = sourceFiles('console').flatMap(({ path, text }) =>
    [...text.matchAll(/\btext-(\[[^\]]*\]|xs|sm|base|lg|\d?xl)|\bfont-?size\b/gi)]
      .filter(([, name]) => name === undefined || !names.includes(name))
      .map(([found]) => `${path}: ${found}`),
  )
  t.same(strange, [])
  const css = readText('console/src/styles.css')
  t.notMatch(css, /font-size|\bfont:/, 'the style sheet sets no sizes either')
  t.end()
})

t.test('the console asks for a typed name for each operation that needs one', async (t) => {
  const operations = Object.keys(TYPED_TO_CONFIRM)
  const senders = sourceFiles('console').filter(({ text }) =>
    operations.some((name) => new RegExp(`request\\(\\s*'${name}'`).test(text)),
  )
  t.ok(senders.length > 0)
  const unasked = senders.filter(({ text }) => !/\b(readTyped|useBalanceChange)\(/.test(text))
  t.same(
    unasked.map(({ path }) => path),
    [],
  )
})

t.test('playground builds the request', async (t) => {
  // The request of the playground, and the command that sends the same one.
  const SETTINGS: Settings = {
    model: 'demo-chat',
    system: '',
    stream: false,
    temperature: null,
    topP: null,
    maxTokens: null,
    reasoningEffort: null,
    tools: '',
  }

  t.test('what is not set is not sent', async (t) => {
    t.same(makeBody(SETTINGS, [{ role: 'user', text: 'Hello!' }]), {
      model: 'demo-chat',
      messages: [{ role: 'user', content: 'Hello!' }],
    })
  })

  t.test('everything that is set is sent', async (t) => {
    const tools = [{ type: 'function', function: { name: 'weather' } }]
    const set = {
      ...SETTINGS,
      system: 'Be brief.',
      stream: true,
      temperature: 0,
      topP: 0.9,
      maxTokens: 100,
      reasoningEffort: 'low',
      tools: JSON.stringify(tools),
    } as const
    const body = makeBody(set, [
      {
        role: 'user',
        text: 'What is this?',
        pictures: [{ name: 'a.png', url: 'data:image/png;base64,AA==' }],
      },
      { role: 'assistant', text: '', toolCalls: [{ id: 'call_1', name: 'weather', arguments: '{}' }] },
      { role: 'tool', text: '12 degrees', toolCallId: 'call_1' },
    ])
    t.same(body, {
      model: 'demo-chat',
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
          ],
        },
        {
          role: 'assistant',
          content: '',
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'call_1', content: '12 degrees' },
      ],
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0,
      top_p: 0.9,
      max_tokens: 100,
      reasoning_effort: 'low',
      tools,
    })
  })

  t.test('definitions of tools that cannot be read are named', async (t) => {
    t.equal(readTools('[').problem, 'not_json')
    t.equal(readTools('{}').problem, 'not_a_list')
    t.equal(readTools('[{"type":"function"}]').problem, 'no_function_name')
    t.same(readTools(' '), { tools: [], problem: null })
  })

  t.test('the command survives a shell, whatever the prompt holds', async (t) => {
    const body = { prompt: `It's "$HOME" \`id\` \\ and\na line 你好` }
    // A function in place of curl prints the last argument: the body.
    const script = `curl() { printf %s "\${@: -1}"; }\n${printCurl('http://127.0.0.1:1', '/v1/chat/completions', body, { isPretty: true })}`
    const printed = execFileSync('bash', ['-c', script], { encoding: 'utf8' })
    t.same(JSON.parse(printed), body)
  })
})

t.test('playground prices an answer as it grows', async (t) => {
  // The playground's own sum must be the gateway's: by estimated tokens while the answer grows, by reported ones after.
  const PRICING = {
    unit: '1M_tokens',
    input: '0.5',
    output: '2',
    cached_input: '0.05',
    cache_write: '0.625',
    cache_write_1h: '1',
    reasoning: '2',
    input_audio: '5',
    output_audio: '2',
    input_image: '0.5',
    output_image: '2',
    per_unit: null,
    variants: null,
    pixel_tiers: [],
    tiers: [
      {
        from_prompt_tokens: 1000,
        input: '1',
        cached_input: '0.1',
        cache_write: '1.25',
        cache_write_1h: null,
        reasoning: null,
        input_audio: null,
        output_audio: null,
        input_image: null,
        output_image: null,
        output: '4',
      },
    ],
    server_tool_call: null,
    server_tools: null,
    service_tiers: { flex: '0.5' },
    minimum: null,
    changes: [],
    discount: '0.5',
    discount_until: '2026-01-01T00:00:00.000Z',
  } as const
  const BEFORE = Date.parse('2025-12-31T23:59:59Z')
  const AFTER = Date.parse('2026-01-01T00:00:00Z')

  const price = readPrice({ ...PRICING, pixel_tiers: [], tiers: [...PRICING.tiers], changes: [] })!
  const text = (content: string) => ({ choices: [{ delta: { content } }] })

  t.test('an unfinished answer is priced by its length', async (t) => {
    const prompt = measurePrompt({ messages: [{ role: 'user', content: 'Hello!' }] })
    t.equal(prompt.bytes, 36, 'the bytes that the gateway counts too')
    const empty = computeCost(price, prompt, NO_ANSWER, AFTER)
    t.match(empty, { promptTokens: 9, outputTokens: 0, isEstimate: true })
    t.equal(printCredits(empty.credits), '0.0000045')
    const grown = ['Good ', 'morn', 'ing'].map(text).reduce(withChunk, NO_ANSWER)
    t.equal(grown.text, 'Good morning')
    t.match(computeCost(price, prompt, grown, AFTER), { outputTokens: 3, isEstimate: true })
    t.equal(
      computeCost(price, prompt, withChunk(NO_ANSWER, text('你好')), AFTER).outputTokens,
      2,
      'by script',
    )
  })

  t.test('pictures have no bytes of text', async (t) => {
    const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(1000)}` } }
    t.ok(measurePrompt({ messages: [{ role: 'user', content: [picture] }] }).bytes < 100)
  })

  t.test('reported usage replaces the estimate: cached tokens, tiers and discounts hold', async (t) => {
    const reported = (prompt: number, cached: number, output: number) =>
      withChunk(NO_ANSWER, {
        choices: [],
        usage: {
          prompt_tokens: prompt,
          completion_tokens: output,
          prompt_tokens_details: { cached_tokens: cached },
        },
      })
    const cost = (answer: typeof NO_ANSWER, now: number) =>
      printCredits(computeCost(price, { bytes: 4, laterBytes: 0 }, answer, now).credits)
    t.equal(cost(reported(100, 40, 10), AFTER), '0.000052')
    t.equal(cost(reported(100, 40, 10), BEFORE), '0.000026')
    t.equal(cost(reported(1000, 0, 10), AFTER), '0.00104')
  })

  t.test('tool calls grow in pieces, each at its index', async (t) => {
    const piece = (index: number, given: string, first?: { id: string; name: string }) => ({
      choices: [
        {
          delta: {
            tool_calls: [{ index, ...(first && { id: first.id }), function: { ...first, arguments: given } }],
          },
        },
      ],
    })
    const answer = [
      piece(0, '', { id: 'call_a', name: 'weather' }),
      piece(0, '{"city":'),
      piece(1, '{}', { id: 'call_b', name: 'time' }),
      piece(0, '"Bern"}'),
      { choices: [{ delta: {}, finish_reason: 'tool_calls' }] },
    ].reduce(withChunk, NO_ANSWER)
    t.same(answer.toolCalls, [
      { id: 'call_a', name: 'weather', arguments: '{"city":"Bern"}' },
      { id: 'call_b', name: 'time', arguments: '{}' },
    ])
    t.equal(answer.finishReason, 'tool_calls')
    t.ok(answer.characters > 0, 'their text is output')
  })

  t.test('an error in the stream keeps what came before it', async (t) => {
    const answer = [text('Half'), { error: { message: 'The upstream went away.' } }].reduce(
      withChunk,
      NO_ANSWER,
    )
    t.match(answer, { text: 'Half', error: 'The upstream went away.' })
  })

  t.test('kinds of tokens and service tiers cost what they do in the gateway', async (t) => {
    const answer = withChunk(NO_ANSWER, {
      choices: [],
      service_tier: 'flex',
      usage: { prompt_tokens: 100, completion_tokens: 10, prompt_tokens_details: { audio_tokens: 40 } },
    })
    // (60 x 0.5 + 40 x 5 + 10 x 2) / 1,000,000 x 0.5
    const { credits } = computeCost(price, { bytes: 4, laterBytes: 0 }, answer, AFTER)
    t.equal(printCredits(credits), '0.000125')
  })

  t.test('a call that failed before its answer has no cost', async (t) => {
    const prompt = measurePrompt({ messages: [{ role: 'user', content: 'Hello!' }] })
    const failure = new Error('The upstream failed.')
    t.equal(computeCostAfter(failure, price, prompt, NO_ANSWER, AFTER), null)
    const begun = withChunk(NO_ANSWER, text('Half of it'))
    t.match(
      computeCostAfter(failure, price, prompt, begun, AFTER),
      { outputTokens: 3 },
      'what came is charged',
    )
    t.match(
      computeCostAfter(null, price, prompt, NO_ANSWER, AFTER),
      { promptTokens: 9 },
      'while it is awaited',
    )
  })
})

t.test('texts are translated', async (t) => {
  // Every text of the console has a translation, and no translation is left over.
  const CALL = /\bt\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")/g
  const NAVIGATION = /(?:name|title): '([^']*)'/g

  const unquoted = (text: string): string => text.replace(/\\(.)/g, '$1')

  const texts = new Set(
    sourceFiles('console').flatMap(({ path }) => {
      const source = readText(path)
      const called = [...source.matchAll(CALL)].map(([, single, double]) => unquoted(single ?? double ?? ''))
      const named = path.endsWith('/navigation.ts')
        ? [...source.matchAll(NAVIGATION)].map(([, text = '']) => text)
        : []
      return [...called, ...named]
    }),
  )

  t.test('the Chinese catalog has every text', async (t) => {
    const file = new URL('../console/src/locales/zh.json', import.meta.url)
    const translations: Record<string, string> = JSON.parse(readFileSync(file, 'utf8'))
    t.ok(texts.size > 0)
    t.same(
      [...texts].filter((text) => !translations[text]),
      [],
      'without a translation',
    )
    t.same(
      Object.keys(translations).filter((text) => !texts.has(text)),
      [],
      'left over',
    )
    const values = (text: string) => [...text.matchAll(/\{(\w+)/g)].map(([, name]) => name).sort()
    for (const [text, translation] of Object.entries(translations))
      t.same(values(translation), values(text), text)
  })
})

t.test('amounts are printed for reading', async (t) => {
  const printed: Readonly<Record<string, string>> = {
    '0': '0.00',
    '16': '16.00',
    '1234567.5': '1,234,567.50',
    '-1234.567': '−1,234.57',
    '12.345678': '12.3457',
    '0.5': '0.50',
    '0.000123456': '0.0001235',
    '0.00000001': '0.00000001',
    '99.99999': '100.00',
    '0.99999': '1.00',
    '-0.001': '−0.001',
  }
  for (const [amount, text] of Object.entries(printed)) t.equal(printAmount(amount), text, amount)
  t.equal(printExact('1234.000123'), '1,234.000123')
  for (const text of ['1,000', '1 000', '1\u202f000', ' 1000 ']) t.equal(parseAmount(text), '1000', text)
  t.equal(parseAmount('−2.50'), '-2.50')
})

t.test('units are named', async (t) => {
  // A call says what was counted: five seconds of a video are no five videos.
  /** By address: the types of these files need those of a browser. */
  const load = (path: string) => import(new URL(`../console/src/${path}`, import.meta.url).href)
  const { activateLanguage } = await load('i18n.ts')
  const { capabilityName, endpointName, printUnits, unitName } = await load('ui/units.ts')

  Object.assign(globalThis, { document: { documentElement: {} } })
  await activateLanguage('en')

  t.test('units', async (t) => {
    t.equal(printUnits(5, 'second', 'video'), '5 seconds')
    t.equal(printUnits(11, '1000_characters', 'audio'), '11 characters')
    t.equal(printUnits(1, 'image', 'image'), '1 image')
    t.equal(printUnits(1, 'generation', 'music'), '1 music')
    t.equal(printUnits(3, undefined, 'video'), '3 video', 'of a model that has left the catalog')
    t.equal(unitName('1000_characters'), '1,000 characters')
    t.equal(endpointName('transcripts_extract'), 'Transcripts')
    t.equal(capabilityName('vision'), 'reads images')
  })
})

t.test('links keep ids of digits', async (t) => {
  // A link keeps an id of digits alone, written by hand or made by the console, however many digits it has.
  for (const id of ['7', '9007199254740993', '12345678901234567890', '1e5', '0.10', '007', 'call_1'])
    t.test(id, async (t) => {
      t.same(validateTexts('task')(readSearch(`?task=${id}`)), { task: id }, 'written by hand')
      t.same(
        validateTexts('task')(readSearch(printSearch({ task: id }))),
        { task: id },
        'made by the console',
      )
    })

  t.test('what is no text is kept as it is', async (t) => {
    t.same(readSearch('?create=true'), { create: true })
    t.same(readSearch(printSearch({ create: true })), { create: true })
    t.same(validateTexts('task')(readSearch('?create=true&task=')), {})
  })

  t.test('a page has the texts that its route names', async (t) => {
    const several = validateTexts('period from to')(readSearch('?period=7d&to=2026-11-23&x=1'))
    t.same(several, { period: '7d', to: '2026-11-23' })
    t.same(validateTexts('')(readSearch('?task=vid_1')), {}, 'none')
  })
})

t.test('a text has its values filled in', async (t) => {
  const calls = '{count, plural, one {# call} other {# calls}} of {name}, {count} in all'
  t.equal(fillIn(calls, { count: 1, name: 'Ada' }), '1 call of Ada, 1 in all')
  t.equal(fillIn(calls, { count: 1200, name: '{count}' }), '1,200 calls of {count}, 1200 in all')
  t.equal(fillIn('Nothing to fill in', {}), 'Nothing to fill in')
})
