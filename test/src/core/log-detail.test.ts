/** What the detail of a call shows, and what it never shows. */
import fc from 'fast-check'
import t from 'tap'
import type { CallDetail } from '../../../schemas/call-log/call-detail.ts'
import { type CallWithDetail, logDetail } from '../../../schemas/call-log/detail.ts'
import { pricing } from '../../../schemas/config/catalog.ts'
import { divideHalfUp, printCredits } from '../../../schemas/money.ts'
import { detailView } from '../../../src/core/call-log/detail.ts'
import { chargeTerms, tokenCharge, tokenPrice } from '../../../src/core/pricing/pricing.ts'
import { extraOf, NO_USAGE } from '../../../src/core/pricing/usage.ts'
import { loggedCall } from './logged-call.ts'

const CALL = loggedCall({
  input_tokens: 300_000,
  output_tokens: 1_000,
  cached_tokens: 100_000,
  cache_write_tokens: 50_000,
  server_tool_calls: 2,
  cost: '5.4095',
  attempts_count: 1,
  stream: true,
  ttfbMs: 400,
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
    detailView({ ...CALL, detail: text, ...call }),
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

t.test('a call by another protocol: what shaped it, where time went, the charge line by line', async (t) => {
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
})

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
    fc.property(offer, usage, counts, fc.boolean(), (prices, { fresh, calls, ...used }, parts, isReduced) => {
      const [discount, tier] = isReduced ? [{ discount: '0.35' }, 'flex'] : [{}, '']
      const price = tokenPrice(pricing.parse({ unit: '1M_tokens', ...prices, ...discount }))!
      const prompt = fresh + used.cached + used.cacheWrite
      const extra = extraOf({
        ...{
          cacheWrite1h: parts.cache_write_1h,
          inputAudio: parts.input_audio,
          inputImage: parts.input_image,
        },
        ...{ outputAudio: parts.output_audio, outputImage: parts.output_image, tools: parts.server_tools },
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
    }),
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
  const none = { cost: '0', input_tokens: 0, output_tokens: 0, usageSource: 'none', ttfbMs: null } as const
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
    shown({ status: 'interrupted', usageSource: 'estimate' }).request_note,
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

t.test('a text that an older gateway stored unmasked shows no URL, key or channel', async (t) => {
  const words = 'acme-eu at https://acme.example/v1 knows no sk-abcdef123456'
  const whole = JSON.stringify(
    shown({
      status: 'error',
      error_code: 'upstream_error',
      error_message: words,
      attempts_count: 2,
      attempts: [attempt(1, words), attempt(2, words)],
    }),
  )
  for (const secret of ['acme', 'https', 'sk-abc']) t.notOk(whole.includes(secret), secret)
  t.match(whole, 'knows no [secret]')
})

t.test('a row without a detail, or with one that cannot be read, is shown all the same', async (t) => {
  for (const detail of ['', 'not JSON', 'null', '[]', '{"temperature":"warm","prices":"free"}'])
    t.match(shown({ detail }), {
      request: { model: 'sonata-large', stream: 'true' },
      upstream: { protocol: 'chat-completions', attempts: '1' },
      gateway: { cost: '5.4095', time_total_ms: '2000' },
    })
})
