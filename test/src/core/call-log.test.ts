/** What the call log says of a call, and what it masks. */
import fc from 'fast-check'
import t from 'tap'
import type { CallDetail } from '../../../schemas/call-log/call-detail.ts'
import { SETTLED_COLUMNS } from '../../../schemas/call-log/columns.ts'
import { type CallWithDetail, logDetail } from '../../../schemas/call-log/detail.ts'
import { channelEntry, pricing } from '../../../schemas/config/catalog.ts'
import { type MediaJob, mediaJob, type TaskResult, taskResult } from '../../../schemas/media/job.ts'
import { divideHalfUp, printCredits } from '../../../schemas/money.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import { printDetail } from '../../../src/core/call-log/detail.ts'
import { KeyMask, makeKeyMask, makeMaskedKeys, withoutKeys } from '../../../src/core/call-log/key-mask.ts'
import { REDACTED_MAX_CHARS, redact } from '../../../src/core/call-log/redact.ts'
import { DEFAULTS } from '../../../src/core/call-log/settlement.ts'
import { findJobEndpoint, jobLines, resultLines } from '../../../src/core/media/job-facts.ts'
import { chargeTerms, tokenCharge, tokenPrice } from '../../../src/core/pricing/pricing.ts'
import { keepExtra, NO_USAGE } from '../../../src/core/pricing/usage.ts'
import { noteToken } from '../../../src/core/routing/channel-access.ts'
import { ANY_CHARACTER } from '../../support/any-character.ts'
import { readText } from '../../support/source-files.ts'
import { loggedCall } from './logged-call.ts'

t.test('the columns of a settlement', async (t) => {
  /** Those that the first release books, in their order. This list never changes. */
  const FIRST = [
    'created_at submitted_at account_id key_id model protocol stream status error_code error_message',
    'input_tokens output_tokens cached_tokens cache_write_tokens reasoning_tokens server_tool_calls',
    'unit_count unit_type cost estimate upstream_cost usage_source latency_ms ttfb_ms channel_id request_id',
    'task_id result_urls result_expires_at attempts_count attempts call_count detail session_id',
  ].flatMap((line) => line.split(' '))
  /** Where a call or a task gets them when it ends. */
  const SETTLING = [
    'pipelines/calls/refusals.ts',
    'pipelines/chat/forward/call-record.ts',
    'pipelines/chat/precharge.ts',
    'pipelines/tasks/end/settlement.ts',
    'src/core/call-log/settlement.ts',
  ]

  t.test('a later one is behind those of the first release, and has a default', async (t) => {
    t.same(SETTLED_COLUMNS.slice(0, FIRST.length), FIRST, 'the booking pads what an earlier version sends')
    const later = SETTLED_COLUMNS.slice(FIRST.length)
    t.same(
      later.filter((name) => !(name in DEFAULTS)),
      [],
    )
  })

  t.test('each gets a value somewhere', async (t) => {
    const settling = SETTLING.map(readText).join('\n')
    t.same(
      SETTLED_COLUMNS.filter((name) => !new RegExp(`\\b${name}\\b`).test(settling)),
      [],
    )
  })
})

t.test('log detail', async (t) => {
  // What the detail of a call shows, and what it never shows.
  const CALL = loggedCall({
    input_tokens: 300_000,
    output_tokens: 1_000,
    cached_tokens: 100_000,
    cache_write_tokens: 50_000,
    server_tool_calls: 2,
    cost: '5.4095',
    attempts_count: 1,
    stream: true,
    ttfb_ms: 400,
    estimate: '20',
  })
  const DETAIL: CallDetail = {
    model_as_asked: 'sonata',
    prompt_bytes: 1_200_000,
    messages: 3,
    max_output_tokens: 4096,
    temperature: 0.7,
    stop_sequences: 2,
    tools: 4,
    built_in_tools: 'web_search',
    tool_choice: 'auto',
    upstream_protocol: 'messages',
    left_out: 'seed: not known there',
    before_upstream_us: 1_500,
    waiting_for_upstream_us: 380_000,
    prices: {
      input: '30',
      cached_input: '3',
      cache_write: '37.5',
      output: '100',
      server_tool_call: '2.022',
      discount: '0.5',
      from_prompt_tokens: 272_000,
    },
  }
  /** The same, as it was stored when fields had abbreviations for names. */
  /** As it would be answered; each group as a record. */
  function shown(call: Partial<CallWithDetail>, detail?: CallDetail) {
    const text = detail === undefined ? '' : JSON.stringify(detail)
    const { request, upstream, gateway, ...rest } = logDetail.parse(
      printDetail({ ...CALL, detail: text, ...call }),
    )
    const record = (group: typeof request) => Object.fromEntries(group.map(({ k, v }) => [k, v]))
    return { ...rest, request: record(request), upstream: record(upstream), gateway: record(gateway) }
  }

  const attempt = (seq: number, error: string | null) => ({
    seq,
    created_at: '2026-03-10T15:30:00.000Z',
    latency_ms: 10 * seq,
    error_code: error && 'upstream_error',
    error_message: error,
  })

  t.test(
    'a call by another protocol: what shaped it, where time went, the charge line by line',
    async (t) => {
      t.strictSame(shown({}, DETAIL), {
        id: 7,
        kind: null,
        request_note: '',
        request: {
          endpoint: 'POST /v1/chat/completions',
          protocol: 'chat-completions',
          model: 'sonata-large',
          model_as_asked: 'sonata',
          stream: 'true',
          messages: '3',
          prompt_bytes: '1200000',
          max_output_tokens: '4096',
          temperature: '0.7',
          stop_sequences: '2',
          tools: '4',
          built_in_tools: 'web_search',
          tool_choice: 'auto',
        },
        upstream: {
          protocol: 'messages',
          translation: 'chat-completions to messages',
          left_out: 'seed: not known there',
          attempts: '1',
          attempt_1: '1998 ms: answered',
          status: '200',
        },
        gateway: {
          request_id: 'req_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
          status: 'success',
          estimate: '20',
          price_tier: 'prompts of 272000 tokens or more',
          discount: 'x 0.5',
          charge_input: '150000 tokens x 30 per 1M x 0.5 = 2.25',
          charge_cached_input: '100000 tokens x 3 per 1M x 0.5 = 0.15',
          charge_cache_write: '50000 tokens x 37.5 per 1M x 0.5 = 0.9375',
          charge_output: '1000 tokens x 100 per 1M x 0.5 = 0.05',
          charge_built_in_tools: '2 calls x 2.022 x 0.5 = 2.022',
          cost: '5.4095',
          usage_source: 'reported by the upstream',
          time_before_upstream_ms: '1.5',
          time_waiting_for_upstream_ms: '380',
          time_answering_ms: '1618.5',
          time_to_first_byte_ms: '400',
          time_total_ms: '2000',
        },
      })
    },
  )

  /** Decimals as whole numbers of 1e-30. */
  const exact = (text: string): bigint => {
    const [whole = '', behind = ''] = text.split('.')
    return BigInt(whole + behind.padEnd(30, '0'))
  }

  t.test('the lines of a charge add up to the cost, which is their sum rounded half up', (t) => {
    const rate = fc
      .tuple(fc.integer({ min: 0, max: 999 }), fc.integer({ min: 0, max: 999_999 }))
      .map(([whole, behind]) => `${whole}.${String(behind).padStart(6, '0')}`)
    const tokens = fc.integer({ min: 0, max: 300_000 })
    const offer = fc.record({
      input: rate,
      cached_input: rate,
      cache_write: rate,
      output: rate,
      server_tool_call: rate,
      ...{ cache_write_1h: rate, reasoning: rate, input_audio: rate, input_image: rate },
      ...{ output_audio: rate, output_image: rate },
      server_tools: fc.record({ web_search: rate }),
      service_tiers: fc.record({ flex: rate }),
    })
    const usage = fc.record({
      fresh: tokens,
      cached: tokens,
      cacheWrite: tokens,
      output: tokens,
      reasoning: tokens,
      calls: fc.nat(9),
    })
    /** Parts of the others, as a report may have them. */
    const counts = fc.record({
      ...{ cache_write_1h: tokens, input_audio: tokens, input_image: tokens },
      ...{ output_audio: tokens, output_image: tokens },
      server_tools: fc.record({ web_search: fc.nat(9) }),
    })
    const seen = new Set<string>()
    fc.assert(
      fc.property(
        offer,
        usage,
        counts,
        fc.boolean(),
        (prices, { fresh, calls, ...used }, parts, isReduced) => {
          const [discount, tier] = isReduced ? [{ discount: '0.35' }, 'flex'] : [{}, '']
          const price = tokenPrice(pricing.parse({ unit: '1M_tokens', ...prices, ...discount }))!
          const prompt = fresh + used.cached + used.cacheWrite
          const extra = keepExtra({
            ...{
              cacheWrite1h: parts.cache_write_1h,
              inputAudio: parts.input_audio,
              inputImage: parts.input_image,
            },
            ...{
              outputAudio: parts.output_audio,
              outputImage: parts.output_image,
              tools: parts.server_tools,
            },
          })
          const billed = { ...NO_USAGE, ...used, ...extra, prompt, serverToolCalls: calls }
          const charge = tokenCharge(price, billed, 0, tier)
          const call = {
            input_tokens: prompt,
            cached_tokens: used.cached,
            cache_write_tokens: used.cacheWrite,
            output_tokens: used.output,
            reasoning_tokens: used.reasoning,
            server_tool_calls: calls,
            cost: printCredits(charge),
          }
          const { gateway } = shown(call, {
            prices: JSON.parse(chargeTerms(price, billed, 0, tier)),
            counts: parts,
          })
          const lines = Object.entries(gateway).filter(([name]) => name.startsWith('charge_'))
          for (const [name] of lines) seen.add(name)
          const sum = lines.reduce((total, [, line]) => total + exact(line.split(' = ')[1]!), 0n)
          return divideHalfUp(sum, 10n ** 22n) === charge
        },
      ),
    )
    const items = ['input', 'cached_input', 'cache_write', 'cache_write_1h', 'input_audio', 'input_image']
      .concat(['output', 'reasoning', 'output_audio', 'output_image', 'web_search', 'built_in_tools'])
      .map((name) => `charge_${name}`)
    t.same([...seen].sort(), items.sort(), 'each price has its line')
    t.end()
  })

  t.test('each end has its note, and only what is known has a line', async (t) => {
    t.match(
      shown({ attempts_count: 2, attempts: [attempt(1, 'busy'), attempt(2, null)] }, {}),
      {
        upstream: { attempts: '2', attempt_1: '10 ms: upstream_error, busy', attempt_2: '20 ms: answered' },
        request_note: 'Answered at attempt 2, billed once.',
      },
      'tried again',
    )
    const none = {
      cost: '0',
      input_tokens: 0,
      output_tokens: 0,
      usage_source: 'none',
      ttfb_ms: null,
    } as const
    const refused = shown(
      {
        ...none,
        status: 'rejected',
        error_code: 'quota_exceeded',
        error_message: 'Top up',
        attempts_count: 0,
      },
      { refused_estimate: '1941000000' },
    )
    t.match(refused, { gateway: { refused_estimate: '19.41', cost: '0' } })
    t.equal(
      refused.request_note,
      'Refused before any upstream was called (quota_exceeded): Top up. The estimate was 19.41 credits. It cost nothing.',
    )
    t.same(refused.upstream, {}, 'no upstream was called')
    t.notOk('estimate' in refused.gateway)
    t.equal(
      shown({ ...none, status: 'interrupted' }).request_note,
      'The connection to the client ended before the answer began. It cost nothing.',
    )
    t.match(
      shown({ status: 'interrupted', usage_source: 'estimate' }).request_note,
      /^The connection to the client ended before the answer was complete. It cost 5.4095 credits, estimated/,
    )
    t.match(
      shown({ ...none, status: 'interrupted', error_code: 'upstream_timeout', error_message: 'late' })
        .request_note,
      /^Ran into the gateway's time limit/,
    )
    t.equal(
      shown({ ...none, status: 'error', error_code: 'upstream_error', error_message: 'busy' }).request_note,
      'Failed (upstream_error): busy. It cost nothing.',
    )
    const lost = shown({
      ...none,
      status: 'interrupted',
      attempts_count: null,
      error_message: 'The gateway died',
    })
    t.same(lost.upstream, {}, 'nobody knows')
  })

  t.test('kind is of what has a visible result', async (t) => {
    const kindOf = (unit_type: CallWithDetail['unit_type']) => shown({ unit_type, unit_count: '2' }).kind
    for (const kind of ['video', 'image', 'music', 'audio'] as const) t.equal(kindOf(kind), kind)
    for (const other of ['avatar', 'voice', 'search', 'transcript', 'chat', null] as const)
      t.equal(kindOf(other), null)
    t.match(shown({ unit_type: 'video', unit_count: '12' }).gateway, { unit_type: 'video', unit_count: '12' })
  })

  t.test('a row without a detail, or with one that cannot be read, is shown all the same', async (t) => {
    for (const detail of ['', 'not JSON', 'null', '[]', '{"temperature":"warm","prices":"free"}'])
      t.match(shown({ detail }), {
        request: { model: 'sonata-large', stream: 'true' },
        upstream: { protocol: 'chat-completions', attempts: '1' },
        gateway: { cost: '5.4095', time_total_ms: '2000' },
      })
  })
})

t.test('job in the call log', async (t) => {
  // What the log shows of work that outlives its request, and what it never shows.
  const SECRET = 'nobody-reads-this'
  const file = { from: 'url', url: `https://example.com/${SECRET}` } as const
  const line = { content: SECRET, showRange: [0, 10] } as const

  /** One job of each kind of work, with the text in every place where a client or an upstream may put one. */
  const JOBS: readonly unknown[] = [
    { work: 'image', prompt: SECRET, n: 3, size: '1024x768', extra: { style: SECRET } },
    { work: 'image_edit', prompt: SECRET, n: 1, images: [file, file], mask: file },
    {
      work: 'video',
      content: [
        { type: 'text', text: SECRET },
        { type: 'image', file, role: SECRET },
        { type: 'video', file },
      ],
      duration: 5,
      resolution: '720p',
      ratio: '16:9',
      extra: { style: SECRET },
    },
    { work: 'avatar_video', avatar: SECRET, voice: SECRET, text: SECRET, duration: 3 },
    { work: 'avatar_video', avatar: SECRET, audio: file, duration: 3 },
    { work: 'lipsync', source_video: file, audio: file, duration: 4.5 },
    { work: 'motion', source_video: file, portraits: [file], face_count: 1, resolution: 'max', duration: 8 },
    {
      work: 'clip_compose',
      video: file,
      asr_id: SECRET,
      video_style_id: SECRET,
      enable_title_effect: true,
      enable_caption_effect: true,
      enable_keyword_effect: false,
      title: SECRET,
      music: file,
      name_card: { name: SECRET, description: SECRET },
      sentences: [line, line],
      pip_config: [{ media: file, begin_time: 0, end_time: 1 }],
    },
    { work: 'music', prompt: null, lyrics: SECRET, title: SECRET, tags: SECRET, instrumental: false },
    { work: 'speech', input: SECRET, voice: SECRET, speed: 1.5 },
    { work: 'voice', name: SECRET, audio: file },
    { work: 'avatar', name: SECRET, source: file, source_kind: 'image' },
    { work: 'transcript', url: SECRET },
    { work: 'subtitle', video: file },
  ]

  const RESULT: TaskResult = taskResult.parse({
    files: [
      { role: 'audio', key: 'music/mus_1-1.mp3', seconds: 120, track: 0 },
      { role: 'audio', upstream_url: `https://example.com/${SECRET}`, track: 1 },
      { role: 'cover', key: 'music/mus_1-1-cover.png', width: 512, height: 512, track: 0 },
    ],
    tracks: [{ clip_id: SECRET, title: SECRET, lyrics: SECRET }],
    made_id: SECRET,
    segments: [line],
    transcript: { content: SECRET, title: SECRET },
  })

  t.test('no text of a client, no name and no link is shown', async (t) => {
    for (const raw of JOBS) {
      const job: MediaJob = mediaJob.parse(raw)
      t.notMatch(JSON.stringify([findJobEndpoint(job), jobLines(job)]), SECRET, job.work)
    }
    t.notMatch(JSON.stringify(resultLines(RESULT)), SECRET)
  })

  t.test('what shaped a job and its result are shown', async (t) => {
    const told = (raw: unknown) => Object.fromEntries(jobLines(mediaJob.parse(raw)))
    t.same(told(JOBS[0]), { images: '3', size: '1024x768', prompt_characters: String(SECRET.length) })
    t.same(told(JOBS[1]), { images: '1', input_images: '2', mask: 'true', prompt_characters: '17' })
    t.match(told(JOBS[2]), { duration_sec: '5', resolution: '720p', input_images: '1', input_videos: '1' })
    const film = (more: object = {}) => mediaJob.parse({ work: 'video', content: [], ...more })
    t.same(jobLines(film(), true), [['generate_audio', 'by default']])
    t.same(jobLines(film({ generate_audio: false })), [['generate_audio', 'false']])
    t.same(jobLines(film()), [])
    t.match(told(JOBS[9]), { characters: '17', speed: '1.5', voice: 'chosen' })
    t.equal(told({ work: 'image', prompt: '', n: 1, size: '9'.repeat(100) }).size?.length, 64, 'cut')
    t.same(Object.fromEntries(resultLines(RESULT)), {
      sounds: '2',
      covers: '1',
      lines: '1',
      not_copied: "1: the upstream's own links are handed out",
    })
    t.same(resultLines(null), [])
    const sums = taskResult.parse({ seconds: 0.07200000000000001, input_seconds: 12 })
    t.same(
      Object.fromEntries(resultLines(sums)),
      { seconds: '0.072', input_seconds: '12' },
      'to the millisecond',
    )
    t.equal(findJobEndpoint(mediaJob.parse({ work: 'image', prompt: '', n: 1, images: [file] })), undefined)
  })

  const CALL = loggedCall({
    model: 'demo-music',
    unit_count: '1',
    unit_type: 'music',
    cost: '19.41',
    task_id: 'mus_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
    protocol: 'music',
    estimate: '19.41',
    detail: JSON.stringify({
      endpoint: '/v1/music/generations',
      request: [['instrumental', 'true']],
      result: [['sounds', '2']],
      before_upstream_us: 1500,
      waiting_for_upstream_us: 98_500,
      charge: '1 generation x 19.41 = 19.41',
    }),
  })

  t.test('a row of a task is laid out', async (t) => {
    const laid = (more: Partial<CallWithDetail> = {}) => logDetail.parse(printDetail({ ...CALL, ...more }))
    t.same(laid(), {
      id: 7,
      kind: 'music',
      request: [
        { k: 'endpoint', v: 'POST /v1/music/generations' },
        { k: 'protocol', v: 'music' },
        { k: 'model', v: 'demo-music' },
        { k: 'instrumental', v: 'true' },
      ],
      upstream: [{ k: 'sounds', v: '2' }],
      gateway: [
        { k: 'request_id', v: CALL.request_id },
        { k: 'task_id', v: CALL.task_id },
        { k: 'status', v: 'success' },
        { k: 'estimate', v: '19.41' },
        { k: 'unit_type', v: 'music' },
        { k: 'unit_count', v: '1' },
        { k: 'charge', v: '1 generation x 19.41 = 19.41' },
        { k: 'cost', v: '19.41' },
        { k: 'time_before_submit_ms', v: '1.5' },
        { k: 'time_submitting_ms', v: '98.5' },
        { k: 'time_from_submit_to_end_ms', v: '1900' },
        { k: 'time_total_ms', v: '2000' },
      ],
      request_note: '',
    })
    const attempt = (seq: number, error: string | null) => ({
      seq,
      created_at: CALL.created_at,
      latency_ms: 10,
      error_code: error,
      error_message: error && 'busy',
    })
    const refused = laid({
      status: 'rejected',
      cost: '0',
      error_code: 'invalid_request',
      error_message: 'No such style',
      attempts_count: 2,
      attempts: [attempt(1, 'upstream_error'), attempt(2, 'invalid_request')],
    })
    t.match(refused.upstream, [
      { k: 'attempts', v: '2' },
      { k: 'attempt_1', v: /^10 ms: upstream_error, busy/ },
      { k: 'attempt_2', v: /^10 ms: invalid_request/ },
      { k: 'sounds' },
    ])
    t.equal(
      refused.request_note,
      'Refused by the upstream (invalid_request): No such style. It cost nothing.',
    )
    const failed = laid({
      status: 'error',
      cost: '0',
      error_code: 'task_failed',
      attempts: [attempt(1, 'upstream_error'), attempt(2, null)],
    })
    t.match(
      failed.upstream[2],
      { k: 'attempt_2', v: '10 ms: answered' },
      'the submit went well, the work did not',
    )
  })

  t.test('kinds are those of visible results', async (t) => {
    const kindOf = (kind: keyof typeof TASK_RULES) =>
      printDetail({ ...CALL, unit_type: TASK_RULES[kind].unitType }).kind
    t.same(
      (['image', 'video', 'music', 'speech', 'avatar', 'voice', 'transcript', 'subtitle'] as const).map(
        kindOf,
      ),
      ['image', 'video', 'music', 'audio', null, null, null, null],
    )
  })
})

t.test('redact', async (t) => {
  const cases: ReadonlyArray<readonly [what: string, text: string, expected: string]> = [
    ['URL', 'see https://api.example.com/v1/chat?key=abc now', 'see [url] now'],
    ['URL escaped for JSON', '{"url":"https:\\/\\/host.example\\/x"}', '{"url":"[url]"}'],
    ['URL with a password', 'postgres://u:p@db:5432/x', '[url]'],
    ['data URI', 'bad image data:image/png;base64,iVBORw0KGgo= here', 'bad image [url] here'],
    ['vendor key', 'Incorrect API key provided: sk-proj-abc***xyz.', 'Incorrect API key provided: [secret]'],
    ['bearer token', 'Authorization: Bearer abcdef123', 'Authorization: Bearer [secret]'],
    [
      'named key in JSON',
      '{"api_key":"zz1","x-goog-api-key": "q"}',
      '{"api_key":"[secret]","x-goog-api-key": "[secret]"}',
    ],
    ['key in a query', 'GET /v1?key=1&api_key=hunter2', 'GET /v1?key=1&api_key=[secret]'],
    ['named key before words', 'password: hunter2 is wrong', 'password: [secret] is wrong'],
    ['named key of letters', 'token: AbCdEf is wrong', 'token: [secret] is wrong'],
    ['named key alone', 'token: swordfish', 'token: [secret]'],
    ['named key in quotes', "secret: 'open sesame now'", "secret: '[secret] sesame now'"],
    ['cloud key', 'key AKIAIOSFODNN7EXAMPLE refused', 'key [secret] refused'],
    ['signed token', 'got eyJhbGciOi.eyJzdWIiOiIx.c2lnbmF0dXJl!', 'got [secret]!'],
    [
      'organization',
      'Rate limit reached for org-AbC123def on tokens',
      'Rate limit reached for [secret] on tokens',
    ],
    ['IPv4', 'connect ECONNREFUSED 10.1.2.3:4000', 'connect ECONNREFUSED [address]'],
    ['IPv6', 'connect ETIMEDOUT 2001:db8::1:443', 'connect ETIMEDOUT [address]'],
    ['IPv6 loopback', 'bound to ::1 only', 'bound to [address] only'],
    ['host', 'pool-7.prod.internal:8080/v1 is busy', '[address] is busy'],
    ['bare host', 'getaddrinfo ENOTFOUND upstream-a', 'getaddrinfo ENOTFOUND [address]'],
    ['mail', 'write to ops@corp.example.', 'write to [address].'],
    ['hex', `digest ${'0af1'.repeat(8)} differs`, 'digest [secret] differs'],
    ['base64', 'blob AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AB== differs', 'blob [secret] differs'],
    ['UUID', 'trace 123e4567-e89b-12d3-a456-426614174000', 'trace [secret]'],
    [
      'private key',
      'x -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- y',
      'x [secret] y',
    ],
    ['control characters', 'one\r\ntwo\u001b[31m\u202ethree', 'one two [31m three'],
  ]

  for (const [what, text, expected] of cases) {
    t.test(`masks: ${what}`, (t) => {
      t.equal(redact(text), expected)
      t.end()
    })
  }

  t.test('leaves what helps the caller', (t) => {
    for (const text of [
      'The value of messages.0.content must be a string',
      'max_tokens: 5000 is more than 4096',
      'model gpt-4o-mini-2024-07-18 is overloaded at 12:34:56, retry after 2026-01-31T12:00:00Z',
      'API key is invalid.',
      'fallback_credit_token: Extra inputs are not permitted',
      'messages.1.content.0.thinking.signature: Field required',
      'messages.1.content.0: signature: Invalid `signature` in `thinking` block',
      'api_key: String should have at most 5 characters',
      'token: Required',
      'Invalid bearer token.',
      'Basic authentication is not supported',
      'Unexpected token < in JSON at position 0',
      'request req_01J8Z3N4V9QKX2T5W7Y0ABCDEF failed',
    ]) {
      t.equal(redact(text), text)
    }
    t.end()
  })

  t.test('masks the names of upstreams as whole words, longest first', (t) => {
    const names = ['line', 'line-a', '', 'a+b']
    t.equal(
      redact('Line-A failed, line failed, online works, a+b too', names),
      '[upstream] failed, [upstream] failed, online works, [upstream] too',
    )
    t.end()
  })

  t.test('masks known secrets wherever they stand and whatever they look like', (t) => {
    const secrets = ['upstream-key-4c1d', 'upstream-key-4c1d-2', '', 'x']
    t.equal(
      redact(
        'no user has upstream-key-4c1d, nor "upstream-key-4c1d-2"; xupstream-key-4c1dx is none',
        [],
        secrets,
      ),
      'no user has [secret], nor "[secret]"; x[secret]x is none',
    )
    t.equal(redact('key upstream-key-4c1d', ['upstream'], secrets), 'key [secret]', 'before names part them')
    t.end()
  })

  t.test('bounds the length without half a character', (t) => {
    t.equal(redact('x '.repeat(2000)).length, REDACTED_MAX_CHARS)
    const smiles = redact(`a${'😀'.repeat(600)}`)
    t.ok(smiles.isWellFormed())
    t.ok(smiles.length <= REDACTED_MAX_CHARS)
    t.end()
  })

  t.test('a secret cut by the reading bound does not show', (t) => {
    const text = `${'https://a.example/'.padEnd(4000, 'x')} ${'y '.repeat(40)}sk-${'Zq7'.repeat(200)}`
    t.notMatch(redact(text), /Zq7/)
    t.end()
  })

  t.test('any text comes out well-formed, bounded and on one line, and no key behind a space shows', (t) => {
    fc.assert(
      fc.property(fc.string({ unit: ANY_CHARACTER, maxLength: 1000 }), (text) => {
        const masked = redact(text)
        return masked.length <= REDACTED_MAX_CHARS && masked.isWellFormed() && !/[\r\n]/.test(masked)
      }),
    )
    const secret = fc.stringMatching(/^sk-[A-Za-z0-9]{20,60}$/)
    fc.assert(
      fc.property(
        fc.string({ maxLength: 50 }),
        secret,
        fc.string({ maxLength: 50 }),
        (before, key, after) => {
          return !redact(`${before} ${key} ${after}`).includes(key)
        },
      ),
    )
    t.end()
  })
})

t.test('keys in answers are masked', async (t) => {
  // A key of the channel inside an answer is masked, wherever the reads split it; every other byte passes as it came.
  const KEY = 'sk-proj-aaXaaXaab9'
  const OTHER = 'sk-proj-aaXaaXaab9-longer'

  const channel = (more: object) =>
    channelEntry.parse({ id: 'c', protocol: 'messages', base_url: 'http://a.test', models: {}, ...more })

  function inPieces(keys: readonly string[], text: string, cuts: readonly number[]): string {
    const mask = new KeyMask(makeMaskedKeys(keys))
    const bytes = Buffer.from(text)
    const ends = [...cuts, bytes.length]
    const out: Buffer[] = []
    let from = 0
    for (const end of ends) {
      out.push(Buffer.from(mask.push(bytes.subarray(from, end)) ?? []))
      from = end
    }
    return Buffer.concat([...out, mask.end() ?? Buffer.alloc(0)]).toString()
  }

  t.test('split at every byte, and at every two', async (t) => {
    const texts = [
      `data: {"text":"${KEY}"}\n\ndata: [DONE]\n\n`,
      `${KEY}${KEY}`,
      `sk-proj-aaXaaX${KEY}`,
      `ü${KEY}ü and ${OTHER}.`,
      `sk-proj-aaXaaXaab`,
      'sk-sk-sk-proj-aa',
      '',
    ]
    for (const text of texts) {
      const keys = [KEY, OTHER]
      const masked = text.replaceAll(OTHER, '[secret]').replaceAll(KEY, '[secret]')
      const length = Buffer.byteLength(text)
      for (let first = 0; first <= length; first++)
        for (let second = first; second <= length; second++)
          if (inPieces(keys, text, [first, second]) !== masked)
            t.equal(inPieces(keys, text, [first, second]), masked, `cut at ${first} and ${second}`)
      t.equal(
        inPieces(
          keys,
          text,
          Array.from({ length }, (_, at) => at),
        ),
        masked,
        'byte by byte',
      )
    }
  })

  t.test('what holds no key passes as the same bytes, at once', async (t) => {
    const mask = new KeyMask(makeMaskedKeys([KEY]))
    const event = Buffer.from('data: {"text":"sk-proj-"}\n\n')
    t.equal(mask.push(event), event)
    t.equal(mask.end(), null)
    t.equal(mask.push(Buffer.from('sk-pro')), null, 'the beginning of a key waits')
    t.equal(mask.push(Buffer.from('file\n'))?.toString(), 'sk-profile\n')
  })

  t.test('masked are the keys that a call carries; words are not', async (t) => {
    const body = (text: string) => Buffer.from(`{"text":"${text}"}`)
    const shown = (more: object, text: string) => withoutKeys(channel(more), body(text)).toString()
    t.equal(shown({ api_key: KEY }, `a ${KEY} b`), '{"text":"a [secret] b"}')
    t.equal(shown({ headers: { Authorization: `Bearer ${KEY}` } }, KEY), '{"text":"[secret]"}')
    t.equal(shown({ headers: { 'x-title': 'Interesting' } }, 'Interesting'), '{"text":"Interesting"}')
    for (const key of ['', 'none', 'ollama', 'anything', 'placeholder'])
      t.equal(makeKeyMask(channel({ api_key: key })), null, `${key} is no secret`)
    const signed = channel({ auth: { type: 'google' } })
    t.equal(makeKeyMask(signed), null)
    for (const token of ['ya29.first-token', 'ya29.second-token']) {
      noteToken(signed, token)
      t.equal(withoutKeys(signed, body(token)).toString(), '{"text":"[secret]"}', 'also when it has changed')
    }
  })

  t.test('an answer of nothing but keys is read once for each of them', async (t) => {
    const keys = makeMaskedKeys([KEY, 'another-key-1234', 'at-the-end-only-1'])
    const cpuOf = (count: number): number => {
      const bytes = Buffer.from(`${`${KEY} another-key-1234 `.repeat(count)}at-the-end-only-1`)
      const begunAt = process.cpuUsage()
      t.equal(new KeyMask(keys).maskWhole(bytes).toString(), `${'[secret] '.repeat(2 * count)}[secret]`)
      const { user, system } = process.cpuUsage(begunAt)
      return user + system
    }
    cpuOf(1000)
    const least = (count: number) => Math.min(cpuOf(count), cpuOf(count), cpuOf(count))
    const [small, large] = [least(20_000), least(80_000)]
    t.ok(large < 10 * small, `${small} µs for a quarter, ${large} µs for all`)
  })
})
