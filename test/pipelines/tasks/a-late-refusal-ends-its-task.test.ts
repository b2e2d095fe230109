/** A refusal whose process was taken for gone in the meantime ends its task. See docs/failure-modes.md, "Money", row 19. */
import t from 'tap'
import { WAIT_GRACE_MS } from '../../../pipelines/tasks/end/deadline.ts'
import { planTransition } from '../../../pipelines/tasks/transition.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { TaskMove } from '../../../src/postgres/tasks/types.ts'
import { startTasks, UNTOUCHED } from './support.ts'

const tasks = await startTasks(t)
const { database, upstream } = tasks

for (const [model, status, errorCode] of [
  ['reel', 422, 'invalid_request'],
  // Another channel would be tried.
  ['film', 503, 'upstream_error'],
] as const)
  t.test(`${model}: ${status} comes after the submit was given up`, async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set(model, { submit: status })
    let claims = 0
    tasks.worker(t, {
      database: {
        ...database,
        async applyTransition(move: TaskMove) {
          if (move.event === 'claimed') claims++
          if (move.event === 'refused' || claims > 1) {
            claims = 0
            const [task] = await database.readTasks([move.id])
            await database.applyTransition(planTransition(task!, 'lost', {}, { now: Date.now() })!)
          }
          return database.applyTransition(move)
        },
      },
    })
    const { id } = await tasks.submit(tasks.order(account, model, model))
    const ended = await tasks.reached(id, 'failed', 'expired')
    t.match(ended, { state: 'failed', errorCode, errorMessage: 'no, says the upstream' })
    t.match(ended.attempts, [{ error_message: 'no, says the upstream' }])
    t.equal(upstream.submits.get(id), 1)
    t.match(await tasks.walletOf(account), UNTOUCHED)
  })

t.test('a refusal later than its client waits for: the client has an id by then', async (t) => {
  const account = await tasks.newAccount()
  upstream.plans.set('slow files', { submit: 503 })
  let lateMs = 0
  tasks.worker(t, {
    now: () => Date.now() + lateMs,
    database: {
      ...database,
      async applyTransition(move: TaskMove) {
        if (move.event === 'claimed') lateMs = TASK_RULES.video.ladderTimeoutMs + WAIT_GRACE_MS
        return database.applyTransition(move)
      },
    },
  })
  const { id, state, errorCode } = await tasks.submit(tasks.order(account, 'film', 'slow files'))
  t.match({ state, errorCode }, { state: 'failed', errorCode: 'upstream_timeout' })
  t.match(await database.findTask(account.account.id, 'video', id), { state: 'failed' })
  t.match(await tasks.walletOf(account), UNTOUCHED)
})

t.test('a refusal that PostgreSQL does not take at once is kept until it does', async (t) => {
  const account = await tasks.newAccount()
  upstream.plans.set('away', { submit: 422 })
  let faults = 3
  tasks.worker(t, {
    database: {
      ...database,
      async applyTransition(move: TaskMove) {
        if (move.event === 'refused' && faults-- > 0) throw new Error('PostgreSQL is away')
        return database.applyTransition(move)
      },
    },
  })
  const order = tasks.order(account, 'reel', 'away')
  const error = await tasks.submit(order).catch((reason: unknown) => reason)
  t.match(error, { status: 422, message: 'no, says the upstream' })
  const { call } = await database.findCall(order.caller.request.requestId)
  t.match(call, { status: 'rejected', error_message: 'no, says the upstream', cost: '0' })
  t.equal(upstream.submits.get(call!.task_id!), 1)
  t.match(await tasks.walletOf(account), UNTOUCHED)
})
