/** The service tier of a report that contradicts itself makes a call cheaper, or as dear as it was asked for, and no dearer. */
import t from 'tap'
import { planTransition } from '../../../pipelines/tasks/transition.ts'
import { modelEntry } from '../../../schemas/config/catalog.ts'
import { emptyResult } from '../../../schemas/media/job.ts'
import { printCredits } from '../../../schemas/money.ts'
import { keptPriceOf } from '../../../src/core/pricing/kept-price.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { readResponseFacts } from '../../../src/protocols/responses/facts.ts'
import { newVideo } from '../../src/postgres/tasks/support.ts'
import { MODEL, RunningCall } from './forward-support.ts'

/** A prompt of 20 tokens and an output of 2 cost 24 at the plain prices. */
const PRICING = {
  ...{ unit: '1M_tokens', input: '1000000', output: '2000000' },
  service_tiers: { flex: '0.5', priority: '3' },
}

interface Report {
  readonly asked?: string | undefined
  readonly reported: string
  readonly isSuspect: boolean
}

const SAID = 'Two tok'
const usageOf = ({ isSuspect }: Report) => ({ input_tokens: 20, output_tokens: isSuspect ? 1e9 + 1 : 2 })

/** What a call costs whose client waits, as a factor on the plain price of what it was charged for. */
function live(report: Report): string {
  const { asked, reported } = report
  const call = new RunningCall({
    request: { stream: false, ...(asked !== undefined && { service_tier: asked }) },
    modelFields: { pricing: PRICING },
    retries: 0,
  })
  const { input_tokens: prompt_tokens, output_tokens: completion_tokens } = usageOf(report)
  call.attempt.head(200, { 'content-type': 'application/json' })
  const choices = [{ index: 0, message: { content: SAID }, finish_reason: 'stop' }]
  const usage = { prompt_tokens, completion_tokens }
  call.attempt.data(JSON.stringify({ choices, usage, service_tier: reported }))
  call.attempt.end()
  const { cost, input_tokens, output_tokens, detail } = call.settlement
  t.equal(detail?.includes('usage_suspect'), report.isSuspect)
  return String(Number(printCredits(BigInt(cost))) / (input_tokens + 2 * output_tokens))
}

/** What an answer in the background costs. */
function background(report: Report): string {
  const { asked, reported } = report
  const entry = modelEntry.parse({ id: MODEL, max_output_tokens: 100, pricing: PRICING })
  const body = { id: 'resp_1', status: 'completed', service_tier: reported, usage: usageOf(report) }
  const output = [{ type: 'message', content: [{ type: 'output_text', text: SAID }] }]
  const call = {
    ...{
      model: MODEL,
      outputLimit: 64,
      choices: 1,
      promptBytes: 80,
      laterBytes: 0,
      toolCallLimit: null,
      settings: '',
    },
    ...{ links: { image: 0, file: 0, audio: 0 }, builtInTools: [] },
    ...(asked !== undefined && { serviceTier: asked }),
  }
  const { idempotency: _, ...made } = newVideo('acc_1', {
    ...{ kind: 'response', model: MODEL, price: keptPriceOf(entry, entry.pricing!) },
    protocol: 'responses',
    job: {
      ...{ work: 'response', conversation: null, kept_days: 30, call },
      body: { from: 'store', key: 'a', media_type: '', bytes: 1, name: '' },
    },
  })
  const task = {
    ...made,
    ...{ state: 'storing', version: 3, channelId: 'keeper', attempts: [], isAwaited: false },
    result: {
      ...emptyResult(),
      response: readResponseFacts(Buffer.from(JSON.stringify({ ...body, output })))!,
    },
  } as unknown as Task
  const { cost, input_tokens, output_tokens, detail } = planTransition(task, 'stored', {}, { now: 9 })!
    .settlement!
  t.equal(detail?.includes('usage_suspect'), report.isSuspect)
  return String(Number(printCredits(BigInt(cost))) / (input_tokens + 2 * output_tokens))
}

for (const [name, factorOf] of Object.entries({ live, background }))
  t.test(name, async (t) => {
    for (const [reported, asked, believed, suspect] of [
      ['priority', undefined, '3', '1'],
      ['priority', 'flex', '3', '1'],
      ['priority', 'priority', '3', '3'],
      ['flex', undefined, '0.5', '0.5'],
      ['flex', 'priority', '0.5', '0.5'],
      ['default', 'priority', '1', '1'],
    ] as const) {
      const of = `${reported}, asked for ${asked}`
      t.equal(factorOf({ asked, reported, isSuspect: false }), believed, of)
      t.equal(factorOf({ asked, reported, isSuspect: true }), suspect, `${of}, and not believed`)
    }
  })
