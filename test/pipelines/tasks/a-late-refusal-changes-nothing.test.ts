/** A refusal whose process was taken for gone in the meantime changes nothing any more. See docs/failure-modes.md, "Money", row 19. */
import t from 'tap'
import { planTransition } from '../../../pipelines/tasks/transition.ts'
import type { TaskMove } from '../../../src/postgres/tasks/types.ts'
import { startTasks, UNTOUCHED } from './support.ts'

const tasks = await startTasks(t)
const { database, upstream } = tasks

for (const [model, status] of [
  ['reel', 422],
  // Another channel would be tried.
  ['film', 503],
] as const)
  t.test(`${model}: ${status} comes after the submit was given up`, async (t) => {
    const account = await tasks.newAccount()
    upstream.plans.set(model, { submit: status })
    let claims = 0
    const worker = tasks.worker(t, {
      database: {
        ...database,
        tasks: {
          ...database.tasks,
          async applyTransition(move: TaskMove) {
            if (move.event === 'claimed') claims++
            if (move.event === 'refused' || claims > 1) {
              claims = 0
              const [task] = await database.tasks.read([move.id])
              await database.tasks.applyTransition(planTransition(task!, 'lost', {}, { now: Date.now() })!)
            }
            return database.tasks.applyTransition(move)
          },
        },
      },
    })
    const order = tasks.order(account, model, model)
    await t.rejects(tasks.submit(order), { code: 'upstream_error' }, 'the client has its error')
    const { call } = await database.calls.find(order.caller.request.requestId)
    t.match(await tasks.reached(call!.task_id!, 'refused'), { refusedStatus: null })
    t.equal(upstream.submits.get(call!.task_id!), 1)
    t.match(await tasks.walletOf(account), UNTOUCHED)
    worker.kill()
  })

t.test('a refusal that PostgreSQL does not take at once is kept until it does', async (t) => {
  const account = await tasks.newAccount()
  upstream.plans.set('away', { submit: 422 })
  let faults = 3
  tasks.worker(t, {
    database: {
      ...database,
      tasks: {
        ...database.tasks,
        async applyTransition(move: TaskMove) {
          if (move.event === 'refused' && faults-- > 0) throw new Error('PostgreSQL is away')
          return database.tasks.applyTransition(move)
        },
      },
    },
  })
  const order = tasks.order(account, 'reel', 'away')
  const error = await tasks.submit(order).catch((reason: unknown) => reason)
  t.match(error, { status: 422, message: 'no, says the upstream' })
  const { call } = await database.calls.find(order.caller.request.requestId)
  t.match(call, { status: 'rejected', error_message: 'no, says the upstream', cost: '0' })
  t.equal(upstream.submits.get(call!.task_id!), 1)
  t.match(await tasks.walletOf(account), UNTOUCHED)
})
