/** The cost and the row of each end of a task, and what each event does to the money. */
import t from 'tap'
import { endAtDeadline, isOver, WAIT_GRACE_MS } from '../../../pipelines/tasks/end/deadline.ts'
import { NO_LINKS, readEnding, settleTask } from '../../../pipelines/tasks/end/settlement.ts'
import type { TaskEngine, TaskMover } from '../../../pipelines/tasks/engine.ts'
import { isAccepted } from '../../../pipelines/tasks/order/watch-tasks.ts'
import { planTransition, planUnsentRefusal } from '../../../pipelines/tasks/transition.ts'
import { emptyResult, mediaJob, taskResult } from '../../../schemas/media/job.ts'
import type { TaskPrice } from '../../../schemas/media/price.ts'
import { ONE_CREDIT, ONE_RATE } from '../../../schemas/money.ts'
import { TASK_KINDS } from '../../../schemas/tasks/kinds.ts'
import {
  isFinal,
  pollDelayMs,
  TASK_EVENTS,
  TASK_RULES,
  TASK_STATES,
  type TaskEvent,
  type TaskState,
} from '../../../schemas/tasks/task.ts'
import type { MoveOutcome, Task, TaskMove } from '../../../src/postgres/tasks/types.ts'
import { newVideo, PRICE } from '../../src/postgres/tasks/support.ts'
import { taskOf } from '../media/support.ts'

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

/** Ends that an upstream reports without a result: a response costs what it had used by then. */
const isReported = (state: TaskState, event: TaskEvent): boolean =>
  state !== 'waiting' && (event === 'failed' || event === 'lapsed' || event === 'cancelled')

t.test('every table is total; each end moves money once, and no event follows an end', async (t) => {
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
    for (const state of waits) t.ok(transitions[state].deadline, `${kind} ${state} ends when its time is up`)
    for (const state of TASK_STATES.filter(isAccepted))
      t.equal(transitions[state].refused, null, `${kind} ${state}: its client has its id`)
    const refused = TASK_STATES.filter((state) => transitions[state].refused !== null)
    t.same(refused, ['waiting', 'submitting'], `${kind}: no answer can be on its way to what was refused`)
  }
})

t.test('a task that succeeds is charged for what was delivered, and its row has the links', async (t) => {
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
    usage_source: 'upstream',
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

t.test('a task that fails shows each attempt, and no result', async (t) => {
  const attempt = (seq: number) => ({
    ...{ seq, created_at: new Date(NOW - 6_000).toISOString(), latency_ms: 250 },
    ...{ error_code: null, error_message: null, retry_after: '5', extras: { a: 1 } },
  })
  const settleAs = (state: TaskState, attempts: number, more: Partial<Task> = {}) => {
    const made = {
      result: { ...emptyResult(), seconds: 4 },
      attempts: [1, 2].slice(0, attempts).map(attempt),
    }
    return settleTask(taskIn(state, { ...made, ...more } as Partial<Task>), null, NO_LINKS, NOW)
  }
  const { retry_after: _, extras: __, ...shown } = attempt(1)
  t.strictSame(settleAs('failed', 1).attempts, [shown])
  t.equal(settleAs('succeeded', 2).attempts?.length, 2)
  t.strictSame(settleAs('succeeded', 1).attempts, [])
  const [failed, succeeded] = [settleAs('failed', 2), settleAs('succeeded', 1)].map(({ detail }) =>
    JSON.parse(detail!),
  )
  t.match(failed, { before_upstream_us: 0, waiting_for_upstream_us: 250_000 }, 'clocks may differ')
  t.notOk('result' in failed)
  t.same(succeeded.result, [['seconds', '4']])
  t.notOk('before_upstream_us' in JSON.parse(settleAs('failed', 0).detail!))
  const counts = [
    settleAs('failed', 2),
    settleAs('refused', 2),
    settleAs('refused', 2, { isEarly: true }),
    settleAs('succeeded', 2, { isAwaited: true }),
  ]
  t.same(
    counts.map(({ attempts_count }) => attempts_count),
    [null, 2, null, 2],
    'null for a task that outlives its request',
  )
})

t.test('the row of a video with sound says so', async (t) => {
  const listRequestLines = (more: object) => {
    const price = { ...taskIn('failed').price, ...more } as TaskPrice
    const { detail } = settleTask(taskIn('failed', { price }), null, NO_LINKS, NOW)
    return JSON.parse(detail!).request.map(([name]: [string]) => name)
  }
  t.ok(listRequestLines({ sound: true }).includes('generate_audio'))
  t.notOk(listRequestLines({ sound: false }).includes('generate_audio'))
})

t.test('a submit with an unknown outcome', async (t) => {
  const plan = (state: TaskState, event: TaskEvent, more: Partial<Task> = {}) =>
    planTransition(taskIn(state, more), event, { upstreamState: 'gone' }, { now: NOW })
  t.match(plan('submitting', 'lost'), { to: 'refused', money: 'release', isLost: true })
  t.match(
    plan('submitting', 'lost', { isEarly: true }),
    { to: 'failed', money: 'refund', isLost: true, settlement: { cost: '0' } },
    'its client knows its id, so the task stays',
  )
  t.match(plan('submitting', 'deadline'), { to: 'expired', isLost: true })
  t.match(plan('cancelled', 'discarded'), {
    ...{ isLost: true, money: null, settlement: null },
    changes: { upstreamState: 'gone' },
  })
  for (const [state, event] of [
    ['submitting', 'refused'],
    ['submitting', 'accepted'],
    ['queued', 'deadline'],
  ] as const)
    t.notOk('isLost' in plan(state, event, { isEarly: true })!, `${state} ${event}`)
  t.strictSame(plan('submitting', 'accepted')?.changes, { upstreamState: 'gone' })
  t.equal(plan('submitting', 'accepted')?.settlement, null, 'there is no row before the end')
  t.equal(plan('queued', 'accepted'), null)
})

t.test('a free delivery costs nothing, and an undelivered result is free', async (t) => {
  const price = { ...taskIn('failed').price, perUnit: '0' } as TaskPrice
  const free = planTransition(taskIn('storing', { price, result: emptyResult() }), 'stored', {}, { now: NOW })
  t.match(free, { money: 'charge', changes: { cost: 0n } })
  const upstreamPrice = taskIn('failed').price
  const failed = planTransition(taskIn('running'), 'failed', {}, { now: NOW, upstreamPrice })
  t.match(failed, { money: 'refund', changes: { cost: 0n, endedAt: NOW } })
  t.notOk(failed?.settlement?.upstream_cost)
  t.strictSame(failed?.settlement?.result_urls, [])
  const made = { ...emptyResult(), seconds: 4 }
  const broken = planTransition(taskIn('storing', { result: made }), 'failed', {}, { now: NOW })
  t.match(broken, { money: 'refund', changes: { cost: 0n }, settlement: { cost: '0' } })
  const lost = planTransition(taskIn('storing', { result: null }), 'stored', {}, { now: NOW })
  t.match(lost?.settlement, { cost: '0', usage_source: 'none' })
  const text = { unit: '1M_tokens' } as TaskPrice
  t.throws(
    () =>
      planTransition(taskIn('storing', { price: text, result: emptyResult() }), 'stored', {}, { now: NOW }),
    /a job video has no price by tokens/,
  )
})

t.test(
  'a deadline ends every task except one that is being stored, and that one too if its client waits',
  async (t) => {
    const isOverAfter = (ms: number, state: TaskState, isAwaited: boolean) =>
      isOver({ now: () => NOW + ms } as TaskMover, taskIn(state, { isAwaited, deadlineAt: NOW }))
    for (const isAwaited of [false, true]) {
      t.notOk(isOverAfter(-1, 'running', isAwaited))
      t.ok(isOverAfter(0, 'running', isAwaited))
    }
    t.notOk(isOverAfter(WAIT_GRACE_MS - 1, 'storing', true))
    t.ok(isOverAfter(WAIT_GRACE_MS, 'storing', true))
    t.notOk(isOverAfter(WAIT_GRACE_MS, 'storing', false))
  },
)

t.test('at the deadline, a submit is lost if the client does not know the id of its task', async (t) => {
  const endLate = async (state: TaskState, isEarly: boolean) => {
    const moves: TaskMove[] = []
    const applyTransition = async (move: TaskMove): Promise<MoveOutcome> => {
      moves.push(move)
      return { outcome: 'stale', task }
    }
    const task = taskIn(state, { isEarly, deadlineAt: NOW })
    await endAtDeadline(
      { database: { tasks: { applyTransition } }, now: () => NOW } as unknown as TaskEngine,
      task,
    )
    return moves
  }
  t.match(await endLate('submitting', false), [
    { to: 'refused', changes: { errorCode: 'upstream_timeout', errorMessage: /in time/ } },
  ])
  for (const [state, isEarly] of [
    ['submitting', true],
    ['queued', false],
  ] as const)
    t.match(await endLate(state, isEarly), [{ to: 'expired', settlement: { error_code: 'task_expired' } }])
})

t.test('polls follow at a tenth of the age, within bounds, and later after each failure', async (t) => {
  const { video } = TASK_RULES
  const delays = (failures: number) =>
    [0, 9_000, 20_000, 100_000, 900_000].map((age) => pollDelayMs(video, age, failures))
  t.same(delays(0), [1_000, 1_000, 2_000, 10_000, 10_000])
  t.same(delays(1), [2_000, 2_000, 4_000, 20_000, 20_000])
  t.same(delays(2), [4_000, 4_000, 8_000, 40_000, 40_000])
  t.same(delays(99), [40_000, 40_000, 40_000, 40_000, 40_000])
  const longest = TASK_KINDS.map((kind) => [kind, pollDelayMs(TASK_RULES[kind], 900_000, 0)])
  t.same(Object.fromEntries(longest), {
    ...{ image: 5_000, video: 10_000, music: 10_000, speech: 5_000, avatar: 10_000, voice: 5_000 },
    ...{ transcript: 2_000, subtitle: 5_000, response: 10_000 },
  })
})

t.test(
  'what an image costs the operator follows its size even beyond the size that bounds the charge',
  async (t) => {
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
  },
)

const ENDS: readonly (readonly [Partial<Task>, status: string, code: string | null])[] = [
  [{ state: 'failed' }, 'error', 'task_failed'],
  [{ state: 'failed', errorCode: 'content_policy_violation' }, 'error', 'content_policy_violation'],
  [{ state: 'failed', errorCode: 'invalid_request' }, 'error', 'invalid_request'],
  [{ state: 'expired' }, 'error', 'task_expired'],
  [{ state: 'cancelled' }, 'error', 'task_cancelled'],
  [{ state: 'refused', refusedStatus: 400, errorCode: 'invalid_request' }, 'rejected', 'invalid_request'],
  [{ state: 'refused', refusedStatus: 422, errorCode: 'too_dark' }, 'rejected', 'too_dark'],
  [{ state: 'refused', refusedStatus: 403, errorCode: 'permission_denied' }, 'error', 'permission_denied'],
  [
    {
      state: 'refused',
      refusedStatus: 403,
      errorCode: 'moderated',
      errorMessage: 'against our content policy',
    },
    'rejected',
    'moderated',
  ],
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

t.test('a task whose client waited until its time was up leaves the row of any such call', async (t) => {
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
    t.match(ofTask(state, early), { status: 'error', error_code: answered }, 'as the upstream answered')
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

t.test('a task says why it ended', async (t) => {
  const ran = 'The task did not end in time.'
  const failed = 'The task failed at the upstream.'
  for (const [ended, code, message] of [
    [{ state: 'failed', endedAt: NOW }, 'task_expired', ran],
    [{ state: 'failed', endedAt: NOW - 1 }, 'task_failed', failed],
    [{ state: 'failed', endedAt: null }, 'task_failed', failed],
    [{ state: 'failed', endedAt: NOW, errorCode: 'too_dark' }, 'too_dark', failed],
    [{ state: 'failed', endedAt: NOW, errorMessage: 'Too dark.' }, 'task_failed', 'Too dark.'],
    [{ state: 'expired', endedAt: NOW }, 'task_expired', ran],
    [{ state: 'cancelled', endedAt: NOW }, 'task_cancelled', 'The task was cancelled.'],
    [{ state: 'refused', errorCode: 'too_dark', errorMessage: 'Too dark.' }, 'too_dark', 'Too dark.'],
    [{ state: 'succeeded', endedAt: NOW }, null, null],
  ] as const)
    t.strictSame(readEnding(taskIn(ended.state, { deadlineAt: NOW, ...ended })), { code, message })
  const told = { errorCode: 'permission_denied', refusedStatus: 403, isAwaited: true }
  t.match(settleTask(taskIn('refused', told), null, NO_LINKS, NOW), { error_code: 'permission_denied' })
  t.match(settleTask(taskIn('succeeded', { isAwaited: true }), null, NO_LINKS, NOW), { error_code: null })
})

t.test('a task that was not sent can be refused; one that may have been sent cannot', async (t) => {
  t.match(planUnsentRefusal(taskIn('waiting'), NOW), {
    ...{ to: 'refused', money: 'release', at: NOW },
    changes: { errorCode: 'service_unavailable', errorMessage: /Try again/ },
    settlement: { status: 'error', error_code: 'service_unavailable', error_message: /Try again/ },
  })
  for (const state of ['submitting', 'queued', 'storing', 'succeeded'] as const)
    t.equal(planUnsentRefusal(taskIn(state), NOW), null, state)
})

t.test('the jobs of every kind of work can be stored and read back', async (t) => {
  const job = mediaJob.parse({ work: 'speech', input: 'hello', voice: null, speed: 1 })
  t.same(mediaJob.parse(JSON.parse(JSON.stringify(job))), job)
})
