/** The charge for an answer in the background, even if its upstream reports no usage or a contradictory one. */
import t from 'tap'
import { planTransition } from '../../../pipelines/tasks/transition.ts'
import { modelEntry } from '../../../schemas/config/catalog.ts'
import { emptyResult } from '../../../schemas/media/job.ts'
import type { TaskPrice } from '../../../schemas/media/price.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import type { ResponseCall, ResponseFacts } from '../../../schemas/tasks/response.ts'
import { toKeptPrice } from '../../../src/core/pricing/kept-price.ts'
import { NO_USAGE } from '../../../src/core/pricing/usage.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { readResponseFacts } from '../../../src/protocols/responses/facts.ts'
import { countEndedTask } from '../../../src/server/tasks/count-transitions.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { newVideo } from '../../src/postgres/tasks/support.ts'

const ENTRY = modelEntry.parse({
  id: 'kept',
  max_output_tokens: 100,
  pricing: { unit: '1M_tokens', input: '1000000', output: '2000000', server_tools: { web_search: '7' } },
})
const CALL: ResponseCall = {
  ...{
    model: 'kept',
    outputLimit: 64,
    choices: 1,
    promptBytes: 80,
    laterBytes: 0,
    toolCallLimit: null,
    settings: '',
  },
  ...{ links: { image: 0, file: 0, audio: 0 }, builtInTools: ['web_search'] },
}
const KEPT = toKeptPrice(ENTRY, ENTRY.pricing!)
const SAID = { type: 'message', content: [{ type: 'output_text', text: 'Two tok' }] }
const SEARCHED = { type: 'web_search_call', action: { type: 'search' } }

const readFacts = (response: object, status: string): ResponseFacts =>
  readResponseFacts(Buffer.from(JSON.stringify({ id: 'resp_1', status, ...response })))!

/** Ends a task with this answer of its upstream. */
function endTask(
  call: Partial<ResponseCall>,
  /** Null if the task ended without a result. */
  facts: ResponseFacts | undefined | null,
  status: string,
  upstreamPrice: TaskPrice | null = null,
) {
  const { idempotency: _, ...made } = newVideo('acc_1', {
    ...{ kind: 'response', model: 'kept', price: KEPT },
    protocol: 'responses',
    job: {
      ...{ work: 'response', conversation: null, kept_days: 30, call: { ...CALL, ...call } },
      body: { from: 'store', key: 'a', media_type: '', bytes: 1, name: '' },
    },
  })
  const task = {
    ...made,
    ...{ state: 'running', version: 3, channelId: 'keeper', attempts: [], isAwaited: false },
    result: facts === null ? null : { ...emptyResult(), ...(facts !== undefined && { response: facts }) },
  } as unknown as Task
  const [state, event] =
    status === 'failed' ? (['running', 'failed'] as const) : (['storing', 'stored'] as const)
  return planTransition({ ...task, state }, event, {}, { now: 9, upstreamPrice })!
}
const settled = (call: Partial<ResponseCall>, response: object, status = 'completed') =>
  endTask(call, readFacts(response, status), status).settlement!

t.test('an unreported prompt is estimated as for a live call', async (t) => {
  const output = [SAID]
  t.match(settled({}, { output }), { input_tokens: 20, output_tokens: 2, usage_source: 'estimate' })
  t.match(settled({ laterBytes: 40 }, { output }), { input_tokens: 25 }, 'characters of several bytes')
  const inline = { image: 1, file: 0, audio: 1, bytes: 800_000 }
  const links = { image: 0, file: 1, audio: 0, inline }
  const carrying = { promptBytes: 800_080, links }
  t.match(settled(carrying, { output }), { input_tokens: 20 + 1600 + 2000 + 16_000 }, 'pictures and sound')
})

t.test('tool calls are charged whether tokens are reported or not', async (t) => {
  const output = [SEARCHED, SEARCHED, SAID]
  const charged = {
    server_tool_calls: 2,
    output_tokens: 2,
    cost: String((20n + 2n * 2n + 2n * 7n) * ONE_CREDIT),
  }
  t.match(settled({}, { output }), charged)
  t.match(settled({}, { output, usage: { input_tokens: 20, output_tokens: 2 } }), charged)
  const failed = settled({}, { output }, 'failed')
  t.match(failed, { status: 'error', input_tokens: 0, output_tokens: 0, cost: String(14n * ONE_CREDIT) })
})

t.test(
  'unreported counts of a whole answer are estimated; a failed answer is charged only what is reported',
  async (t) => {
    const usage = { ...NO_USAGE, prompt: 7, output: 3 }
    const partial = { ...readFacts({ output: [SAID] }, 'completed'), usage, charactersSinceUsage: 8 }
    const settleWith = (facts: Partial<ResponseFacts>, status: string) =>
      endTask({ builtInTools: [] }, { ...partial, ...facts }, status).settlement
    t.match(settleWith({ isUsageWhole: false }, 'completed'), {
      ...{ input_tokens: 7, output_tokens: 5, usage_source: 'estimate', cost: String(17n * ONE_CREDIT) },
    })
    t.match(settleWith({ isUsageWhole: true }, 'completed'), { output_tokens: 3, usage_source: 'upstream' })
    t.match(settleWith({ isUsageWhole: false }, 'failed'), {
      ...{ input_tokens: 7, output_tokens: 3, usage_source: 'upstream', cost: String(13n * ONE_CREDIT) },
    })
  },
)

t.test('the hold of a failed answer is charged if anything was used, otherwise refunded', async (t) => {
  const facts = readFacts({ output: [SEARCHED] }, 'failed')
  t.match(endTask({}, facts, 'failed'), { money: 'charge', changes: { cost: 7n * ONE_CREDIT } })
  const unused = [readFacts({ output: [] }, 'failed'), undefined, null]
  for (const nothing of unused)
    t.match(endTask({}, nothing, 'failed', KEPT), {
      ...{ money: 'refund', changes: { cost: 0n } },
      settlement: { cost: '0', usage_source: 'none', unit_type: null },
    })
  t.match(endTask({}, facts, 'failed', KEPT).settlement, { upstream_cost: String(7n * ONE_CREDIT) })
  t.notOk(
    endTask({}, undefined, 'failed', KEPT).settlement?.upstream_cost,
    'the operator pays nothing either',
  )
})

t.test('its row has the counts, the settings and the prices of a call', async (t) => {
  const usage = {
    ...{ input_tokens: 20, output_tokens: 9 },
    ...{ input_tokens_details: { cached_tokens: 4 }, output_tokens_details: { reasoning_tokens: 6 } },
  }
  const row = settled({ model: 'other name' }, { output: [SAID], usage })
  t.match(row, {
    ...{ input_tokens: 20, cached_tokens: 4, cache_write_tokens: 0, output_tokens: 9, reasoning_tokens: 6 },
    ...{ unit_count: null, unit_type: null, stream: false, protocol: 'responses' },
  })
  t.match(JSON.parse(row.detail!), {
    ...{ prompt_bytes: 80, model_as_asked: 'other name', prices: { input: '1000000' } },
  })
  const searched = JSON.parse(settled({}, { output: [SEARCHED, SAID], usage }).detail!)
  t.match(searched.counts, { server_tools: { web_search: 1 } })
  t.notOk('model_as_asked' in searched)
  const unpriced = endTask({}, undefined, 'failed').settlement!
  t.notMatch(unpriced.detail, 'prices')
})

t.test('impossible usage is counted, logged and kept', async (t) => {
  const warnings: unknown[][] = []
  const metrics = createMetrics('1')
  const count = countEndedTask(metrics, { warn: (...line: unknown[]) => void warnings.push(line) })
  const usage = { input_tokens: 20, output_tokens: 2 }
  count(settled({}, { output: [SAID], usage }))
  count(settled({}, { output: [SAID] }))
  t.same(warnings, [])
  const odd = settled({}, { output: [SAID], usage: { ...usage, output_tokens: 9_000 } })
  count(odd)
  count({ ...odd, protocol: 'videos', usage_source: 'upstream' })
  t.match(odd, { output_tokens: 2 }, 'only what was delivered is charged')
  t.match(odd.detail, '"usage_reported":"{\\"input_tokens\\":20,\\"output_tokens\\":9000}"')
  t.match(warnings, [[{ request_id: odd.request_id, counts: 'output 9000 > 100' }, /no call can have/]])
  t.equal(warnings.length, 1)
  const text = await metrics.text()
  const labels = 'channel="keeper",model="kept"'
  for (const line of [
    `tollgate_metered_calls_total{${labels},source="upstream"} 2`,
    `tollgate_metered_calls_total{${labels},source="estimate"} 1`,
    `tollgate_usage_suspect_total{${labels}} 1`,
    'tollgate_calls_total{model="kept",status="success"} 4',
  ])
    t.ok(text.includes(`${line}\n`), line)
})
