/** Submits of which nobody knows what became, and races around them. See docs/failure-modes.md, "Money", row 19. */
import { VirtualTimeScheduler } from 'rxjs'
import t from 'tap'
import { watchTasks } from '../../../pipelines/tasks/order/watch-tasks.ts'
import { planTransition } from '../../../pipelines/tasks/transition.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { TaskMove } from '../../../src/postgres/tasks/types.ts'
import { connectTo } from '../../support/connections.ts'
import { eventually } from '../../support/eventually.ts'
import { silent, startTasks, UNTOUCHED } from './support.ts'

const tasks = await startTasks(t)
const { database, upstream } = tasks

t.test('an acceptance that comes once its submit was given up is on the record', async (t) => {
  const account = await tasks.newAccount()
  const worker = tasks.worker(t, {
    database: {
      ...database,
      tasks: {
        ...database.tasks,
        async applyTransition(move: TaskMove) {
          if (move.event === 'accepted') {
            const [task] = await database.tasks.read([move.id])
            await database.tasks.applyTransition(planTransition(task!, 'lost', {}, { now: Date.now() })!)
          }
          return database.tasks.applyTransition(move)
        },
      },
    },
  })
  const order = tasks.order(account, 'film', 'too late')
  await t.rejects(tasks.submit(order))
  const { call } = await database.calls.find(order.caller.request.requestId)
  const [lost] = await eventually('the upstream is on the record', async () => {
    const all = await database.lostSubmits.list({ isOpen: true, before: null, limit: 50 })
    const own = all.filter(({ taskId, upstreamId }) => taskId === call!.task_id && upstreamId !== null)
    return own.length > 0 ? own : undefined
  })
  t.match(lost, { state: 'found', upstreamId: /^up-/ })
  t.match(await tasks.walletOf(account), UNTOUCHED)
  worker.kill()
})

t.test('a client that has waited for a submit as long as it may gets 504 and the money', async (t) => {
  const account = await tasks.newAccount()
  const begun = Promise.withResolvers<void>()
  const worker = tasks.worker(t, {
    database: {
      ...database,
      tasks: {
        ...database.tasks,
        async applyTransition(move: TaskMove) {
          const outcome = await database.tasks.applyTransition(move)
          if (move.event !== 'claimed') return outcome
          begun.resolve()
          return new Promise<never>(() => {})
        },
      },
    },
  })
  const scheduler = new VirtualTimeScheduler(undefined, 2 * TASK_RULES.video.ladderTimeoutMs)
  const watch = watchTasks({ database, messages: { listen: () => () => {} }, log: silent, scheduler })
  const order = tasks.order(account, 'film', 'stuck')
  const answered = tasks.submit(order, { scheduler, watch }).catch((error: unknown) => error)
  await begun.promise
  scheduler.flush()
  t.match(await answered, { status: 504, code: 'upstream_timeout' })
  t.match(await tasks.walletOf(account), UNTOUCHED)
  const { call } = await database.calls.find(order.caller.request.requestId)
  t.match(call, { status: 'interrupted', error_code: 'upstream_timeout' })
  worker.kill()
})

t.test('the account of a submit that was lost gets no event', async (t) => {
  const account = await tasks.newAccount()
  tasks.worker(t)
  upstream.plans.set('dropped', { submit: 'drop' })
  const order = tasks.order(account, 'film', 'dropped')
  await t.rejects(tasks.submit(order), { code: 'upstream_unreachable' })
  const { call } = await database.calls.find(order.caller.request.requestId)
  t.match(await tasks.walletOf(account), UNTOUCHED)
  const query = { accountId: account.account.id, kind: 'video', states: null, limit: 9 } as const
  t.same((await database.tasks.list(query)).tasks, [])
  const sql = connectTo(t, tasks.engines.databaseUrl)
  t.same(await sql`SELECT type FROM events WHERE subject_id = ${call!.task_id!}`, [])
})
