/** What an answer in the background owes where its upstream reports no usage, or one that contradicts itself. */
import t from 'tap'
import { planTransition } from '../../../pipelines/tasks/transition.ts'
import { modelEntry } from '../../../schemas/config/catalog.ts'
import { emptyResult } from '../../../schemas/media/job.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import type { ResponseCall } from '../../../schemas/tasks/response.ts'
import { keptPriceOf } from '../../../src/core/pricing/kept-price.ts'
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
const SAID = { type: 'message', content: [{ type: 'output_text', text: 'Two tok' }] }
const SEARCHED = { type: 'web_search_call', action: { type: 'search' } }

/** The settlement of a task whose upstream answers so. */
function settled(call: Partial<ResponseCall>, response: object, status = 'completed') {
  const facts = readResponseFacts(Buffer.from(JSON.stringify({ id: 'resp_1', status, ...response })))!
  const { idempotency: _, ...made } = newVideo('acc_1', {
    ...{ kind: 'response', model: 'kept', price: keptPriceOf(ENTRY, ENTRY.pricing!) },
    protocol: 'responses',
    job: {
      ...{ work: 'response', conversation: null, kept_days: 30, call: { ...CALL, ...call } },
      body: { from: 'store', key: 'a', media_type: '', bytes: 1, name: '' },
    },
  })
  const task = {
    ...made,
    ...{ state: 'running', version: 3, channelId: 'keeper', attempts: [], isAwaited: false },
    result: { ...emptyResult(), response: facts },
  } as unknown as Task
  const [event, ends] =
    status === 'failed' ? (['failed', 'failed'] as const) : (['stored', 'storing'] as const)
  return planTransition({ ...task, state: ends === 'failed' ? 'running' : ends }, event, {}, { now: 9 })!
    .settlement!
}

t.test('a prompt that is not reported is estimated as that of a live call', async (t) => {
  const output = [SAID]
  t.match(settled({}, { output }), { input_tokens: 20, output_tokens: 2, usage_source: 'estimate' })
  t.match(settled({ laterBytes: 40 }, { output }), { input_tokens: 25 }, 'letters of several bytes')
  const inline = { image: 1, file: 0, audio: 1, bytes: 800_000 }
  const links = { image: 0, file: 1, audio: 0, inline }
  const carrying = { promptBytes: 800_080, links }
  t.match(settled(carrying, { output }), { input_tokens: 20 + 1600 + 2000 + 16_000 }, 'pictures and sound')
})

t.test('tools have run, whether tokens are reported or not', async (t) => {
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

t.test('usage that no call can have is counted, logged and kept', async (t) => {
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
