/** What each end of a task costs, what row it leaves, and what each event does to the money. */
import t from 'tap'
import { settleTask } from '../../../pipelines/tasks/end/settlement.ts'
import { isAccepted } from '../../../pipelines/tasks/order/watch-tasks.ts'
import { planTransition, planUnsentRefusal } from '../../../pipelines/tasks/transition.ts'
import { modelEntry } from '../../../schemas/config/catalog.ts'
import { emptyResult, mediaJob, taskResult } from '../../../schemas/media/job.ts'
import { ONE_CREDIT, ONE_RATE } from '../../../schemas/money.ts'
import { TASK_KINDS } from '../../../schemas/tasks/kinds.ts'
import type { ResponseCall } from '../../../schemas/tasks/response.ts'
import {
  isFinal,
  TASK_EVENTS,
  TASK_RULES,
  TASK_STATES,
  type TaskEvent,
  type TaskState,
} from '../../../schemas/tasks/task.ts'
import { toKeptPrice } from '../../../src/core/pricing/kept-price.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { readResponseFacts } from '../../../src/protocols/responses/facts.ts'
import { countEndedTask } from '../../../src/server/tasks/count-transitions.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { newVideo, PRICE } from '../../src/postgres/tasks/support.ts'
import { taskOf } from '../media/support.ts'

t.test('background answers are charged as live ones', async (t) => {
  // What an answer in the background owes where its upstream reports no usage, or one that contradicts itself.
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
      ...{ kind: 'response', model: 'kept', price: toKeptPrice(ENTRY, ENTRY.pricing!) },
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
})

t.test('ends and what the log says of them', async (t) => {
  // What row each end of a task leaves, and what each event does to the money.
  const NOW = 1_760_000_000_000

  function taskIn(state: Task['state'], more: Partial<Task> = {}): Task {
    const { idempotency: _, ...made } = newVideo('acc_1', {
      submittedAt: NOW - 5_000,
      price: { ...PRICE, perUnit: String((5n * ONE_RATE) / 2n) },
      hold: 30n,
    })
    const reached = {
      state,
      version: 3,
      chain: 0,
      channelId: 'film',
      upstreamModel: 'film-v1',
      touchedAt: NOW,
    }
    const unknown = { upstreamId: null, upstreamState: null, acceptedAt: null }
    return taskOf({ ...made, ...reached, ...unknown, ...more })
  }

  /** An end without a result that an upstream reports: a response costs what it has used until then. */
  const isReported = (state: TaskState, event: TaskEvent): boolean =>
    state !== 'waiting' && (event === 'failed' || event === 'lapsed' || event === 'cancelled')

  t.test('every table is total; each end moves money once, and nothing comes behind an end', async (t) => {
    for (const kind of TASK_KINDS) {
      const { transitions } = TASK_RULES[kind]
      for (const state of TASK_STATES)
        for (const event of TASK_EVENTS) {
          const cell = transitions[state][event]
          t.not(cell, undefined)
          if (cell === null) continue
          if (event === 'discarded') {
            t.same(
              cell,
              { to: state, money: null },
              `${kind} ${state}: an answer that comes too late changes nothing`,
            )
            t.ok(isFinal(state) && state !== 'succeeded')
            continue
          }
          t.notOk(isFinal(state), `${kind} ${state} ${event}`)
          t.equal(cell.money !== null, isFinal(cell.to), `${kind} ${state} ${event}`)
          const isCharged = cell.to === 'succeeded' || (kind === 'response' && isReported(state, event))
          t.equal(cell.money === 'charge', isCharged, `${kind} ${state} ${event}`)
        }
      const waits = TASK_STATES.filter((state) => !isFinal(state) && state !== 'storing')
      for (const state of waits)
        t.ok(transitions[state].deadline, `${kind} ${state} ends when its time is up`)
      for (const state of TASK_STATES.filter(isAccepted))
        t.equal(transitions[state].refused, null, `${kind} ${state}: its client has its id`)
      const refused = TASK_STATES.filter((state) => transitions[state].refused !== null)
      t.same(refused, ['waiting', 'submitting'], `${kind}: no answer can be on its way to what was refused`)
    }
  })

  t.test('a task that succeeds is charged what was delivered, and its row says where that is', async (t) => {
    const attempt = {
      seq: 1,
      created_at: new Date(NOW - 4_000).toISOString(),
      latency_ms: 250,
      error_code: null,
      error_message: null,
    }
    const task = taskIn('storing', {
      result: { ...emptyResult(), seconds: 4 },
      upstreamId: 'up-1',
      attempts: [attempt],
    })
    const links = { urls: ['https://files.test/a'], expiresAt: NOW + 1_000 }
    const move = planTransition(task, 'stored', {}, { now: NOW, links })
    t.match(move, { id: task.id, version: 3, to: 'succeeded', money: 'charge', at: NOW })
    t.match(move?.changes, { cost: 10n * ONE_CREDIT, endedAt: NOW })
    t.match(move?.settlement, {
      request_id: task.requestId,
      task_id: task.id,
      status: 'success',
      error_code: null,
      unit_count: '4',
      unit_type: 'video',
      cost: String(10n * ONE_CREDIT),
      estimate: '30',
      latency_ms: 5_000,
      ttfb_ms: null,
      channel_id: 'film',
      attempts: { length: 0 },
      result_urls: links.urls,
      result_expires_at: links.expiresAt,
    })
    const detail = JSON.parse(move!.settlement!.detail!)
    t.match(detail, {
      before_upstream_us: 1_000_000,
      waiting_for_upstream_us: 250_000,
      charge: '4 seconds x 2.5 = 10',
    })
  })

  t.test('the cost of an image follows its size, also beyond the one that bounds its charge', async (t) => {
    const price = {
      ...PRICE,
      unit: 'image' as const,
      perUnit: String(5n * ONE_RATE),
      pixelTiers: [{ fromPixels: 1_000_000, perUnit: String(8n * ONE_RATE) }],
    }
    const job = mediaJob.parse({ work: 'image', prompt: 'x', n: 1, size: '1024x768' })
    const result = taskResult.parse({ files: [{ role: 'image', width: 1440, height: 1080 }] })
    const task = taskIn('storing', { job, price, result })
    const move = planTransition(task, 'stored', {}, { now: NOW, upstreamPrice: price })
    t.match(move?.settlement, {
      cost: String(5n * ONE_CREDIT),
      upstream_cost: String(8n * ONE_CREDIT),
    })
  })

  const ENDS: readonly (readonly [Partial<Task>, status: string, code: string | null])[] = [
    [{ state: 'failed' }, 'error', 'task_failed'],
    [{ state: 'failed', errorCode: 'content_policy_violation' }, 'error', 'content_policy_violation'],
    [{ state: 'expired' }, 'error', 'task_expired'],
    [{ state: 'cancelled' }, 'error', 'task_cancelled'],
    [{ state: 'refused', refusedStatus: 400, errorCode: 'invalid_request' }, 'rejected', 'invalid_request'],
    [{ state: 'refused', refusedStatus: 403, errorCode: 'permission_denied' }, 'error', 'permission_denied'],
    [{ state: 'refused', refusedStatus: 401, errorCode: 'invalid_api_key' }, 'error', 'invalid_api_key'],
    [
      { state: 'refused', refusedStatus: 429, errorCode: 'rate_limit_exceeded' },
      'error',
      'rate_limit_exceeded',
    ],
    [{ state: 'refused', refusedStatus: 503, errorCode: 'upstream_error' }, 'error', 'upstream_error'],
    [{ state: 'refused', errorCode: 'invalid_request' }, 'rejected', 'invalid_request'],
    [{ state: 'refused', errorCode: 'upstream_unreachable' }, 'error', 'upstream_unreachable'],
    [{ state: 'refused', errorCode: 'no_channel_available' }, 'error', 'no_channel_available'],
    [{ state: 'refused', errorCode: 'upstream_timeout' }, 'interrupted', 'upstream_timeout'],
  ]

  t.test('a task that was waited for until its time was up: the row is that of any call so', async (t) => {
    const ofTask = (state: 'expired' | 'failed' | 'cancelled', more: Partial<Task>) =>
      settleTask(taskIn(state, { deadlineAt: NOW, ...more }), null, { urls: [], expiresAt: null }, NOW)
    for (const state of ['expired', 'failed'] as const) {
      const row = ofTask(state, { isAwaited: true })
      t.match(row, { status: 'interrupted', error_code: 'upstream_timeout', cost: '0' }, state)
      t.match(ofTask(state, { isAwaited: false, endedAt: NOW }), {
        status: 'error',
        error_code: 'task_expired',
        error_message: 'The task did not end in time.',
      })
      const early = { isAwaited: true, deadlineAt: NOW + 1 }
      const answered = state === 'failed' ? 'upstream_error' : 'upstream_timeout'
      t.match(ofTask(state, early), { status: 'error', error_code: answered }, 'so said the upstream')
      const told = { isAwaited: true, errorCode: 'content_policy' }
      const named = state === 'failed' ? 'invalid_request' : 'upstream_timeout'
      t.match(ofTask(state, told), { status: 'error', error_code: named })
      t.match(
        ofTask(state, { ...told, isAwaited: false }),
        { error_code: 'content_policy' },
        'as a poll shows it',
      )
    }
    t.match(ofTask('cancelled', { isAwaited: true }), { status: 'error', error_code: 'upstream_error' })
  })

  for (const [ended, status, code] of ENDS)
    t.test(
      `${ended.state} ${ended.refusedStatus ?? ''} ${ended.errorCode ?? ''}: a row «${status}» at no cost`,
      async (t) => {
        const row = settleTask(taskIn(ended.state!, ended), null, { urls: [], expiresAt: null }, NOW)
        t.match(row, { status, error_code: code, cost: '0', unit_count: null, usage_source: 'none' })
        t.notOk(row.result_urls?.length, 'nothing was made')
      },
    )

  t.test('what nobody has sent can be refused, what somebody may have sent cannot', async (t) => {
    t.match(planUnsentRefusal(taskIn('waiting'), NOW), { to: 'refused', money: 'release' })
    for (const state of ['submitting', 'queued', 'storing', 'succeeded'] as const)
      t.equal(planUnsentRefusal(taskIn(state), NOW), null, state)
  })

  t.test('the jobs of all kinds of works can be kept and read back', async (t) => {
    const job = mediaJob.parse({ work: 'speech', input: 'hello', voice: null, speed: 1 })
    t.same(mediaJob.parse(JSON.parse(JSON.stringify(job))), job)
  })
})
