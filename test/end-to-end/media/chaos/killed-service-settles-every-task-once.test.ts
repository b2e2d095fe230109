/**
 * The whole service is killed with tasks in every step, and its processes a dozen times at random instants: every hold
 * is resolved, every task has one row and at most one charge, no upstream is asked for the same twice, and the books
 * agree. See docs/failure-modes.md, "Money", rows 4, 19 and 25.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { isFinal } from '../../../../schemas/tasks/task.ts'
import { Random } from '../../../simulation/random.ts'
import { connectTo } from '../../../support/connections.ts'
import { startService, until } from '../../../support/service.ts'
import { seedNote, seeds, TIMEOUT_MS } from '../../chaos/plan.ts'
import { balanceOf } from '../../support.ts'
import { demonstration } from '../support.ts'
import { checkBooks, lostSubmits, type TaskLine, taskLines } from './books.ts'
import {
  endUpstream,
  expectedBalance,
  forgettingKilled,
  holdBooking,
  killChild,
  restart,
  tellAgain,
  untilTasks,
  waitingForBooking,
} from './crashes.ts'
import { type Answered, asked, insisted, plannedIntents } from './intents.ts'
import { EACH, FOLLOWED, intentsOf, SETTLING, type Step, stepOf, UNTOLD } from './steps.ts'

const CREDIT = '1000000'
const LOAD = { intents: 60, spreadMs: 2_500 }
/** What is killed in each life of the service; twice all of it. */
const LIVES = [
  ['tasks', 'gateway', 'all'],
  ['gateway', 'tasks', 'all'],
] as const
const BETWEEN_KILLS_MS = [50, 450] as const
/** Of the other upstreams nobody can ask whether they took a submit on that was cut off. */
const CAN_BE_ASKED = 'demo-video-film'

/** Answers that promised a result, or gave one, were true. */
function checkAnswers(t: Test, answers: readonly Answered[], tasks: readonly TaskLine[]): void {
  const byId = new Map(tasks.map((task) => [task.id, task]))
  const unheardOf = answers.filter(({ status, body }) => {
    const state = byId.get(String(body.id))?.state
    return status === 200 && 'id' in body && (state === undefined || state === 'refused')
  })
  t.same(unheardOf, [], 'every id that was given out is a task')
  const delivered = new Set(tasks.filter(({ state }) => state === 'succeeded').map(({ intent }) => intent))
  const wrong = answers.filter(
    ({ intent: { name }, status, body }) => status === 200 && !('id' in body) && !delivered.has(name),
  )
  t.same(wrong, [], 'every result that was given out is one that was charged')
  const own = answers.filter(({ body }) => /service_unavailable|internal_error/.test(JSON.stringify(body)))
  t.same(own, [], 'nothing fails in the service itself')
}

t.setTimeout(TIMEOUT_MS)
for (const seed of seeds())
  await t.test(seedNote(seed), async (t) => {
    const random = new Random(seed)
    const service = await startService(t, { config: demonstration() })
    const sql = connectTo(t, service.engines.databaseUrl, 3)
    const { key, accountId } = await service.newKey(CREDIT)
    const allEnded = () => untilTasks(sql, 'all have ended', 1, ({ state }) => isFinal(state))

    await t.test('killed with tasks in every step', async (t) => {
      const steps = [...FOLLOWED, SETTLING, UNTOLD]
      const cut: Promise<Answered | null>[] = []
      const bring = async (of: readonly Step[], from: number) => {
        for (const intent of intentsOf(of, from)) cut.push(asked(service, key, intent))
        await untilTasks(sql, `tasks are ${of.at(-1)!.name}`, (from + of.length) * EACH, (task) =>
          stepOf(steps, task).stands.includes(task.state),
        )
      }
      await bring(FOLLOWED, 0)
      const letBook = await holdBooking(sql)
      await bring([SETTLING], FOLLOWED.length)
      await until('their ends wait', async () => (await waitingForBooking(sql)) >= EACH)
      await service.engines.stopEngine('nats')
      await bring([UNTOLD], FOLLOWED.length + 1)
      await service.kill()
      const killed = { gateway: Date.now(), tasks: Date.now() }
      await Promise.all(cut)
      await letBook()
      await service.engines.startEngine('nats')
      await service.start()
      const expected = await expectedBalance(sql, accountId)
      t.not(expected.held, '0', 'holds are open')
      t.match(await balanceOf(service, key), expected, 'the balance is exact with holds open')
      Object.assign(forgettingKilled(t, sql), killed)
      for (const { name } of intentsOf(steps, 0)) await endUpstream(service, name)
      const lasting = steps.flatMap((step, at) => (step.ends === 'succeeded' ? intentsOf([step], at) : []))
      const answers = await Promise.all(lasting.map((intent) => insisted(service, key, intent)))
      const tasks = await allEnded()
      t.equal(tasks.length, steps.length * EACH, 'a repeated request found the existing task')
      for (const task of tasks) t.equal(task.state, stepOf(steps, task).ends, stepOf(steps, task).name)
      checkAnswers(t, answers, tasks)
      await tellAgain(service, tasks)
      await checkBooks(t, service, sql, { lost: await lostSubmits(sql, CAN_BE_ASKED) })
    })

    await t.test('killed a dozen times at random', async (t) => {
      const before = new Set((await taskLines(sql)).map(({ id }) => id))
      const answering = Promise.all(
        plannedIntents(random, LOAD.intents).map(async (intent) => {
          await sleep(random.int(0, LOAD.spreadMs))
          return insisted(service, key, intent)
        }),
      )
      const killed = forgettingKilled(t, sql)
      for (const victim of LIVES.flat()) {
        await sleep(random.int(...BETWEEN_KILLS_MS))
        const ended =
          victim === 'all' ? await restart(service, random.int(0, 100)) : await killChild(service, victim)
        Object.assign(killed, ended)
      }
      const answers = await answering
      const tasks = (await allEnded()).filter(({ id }) => !before.has(id))
      t.comment(
        [...Map.groupBy(tasks, ({ state }) => state)]
          .map(([state, all]) => `${all.length} ${state}`)
          .join(', '),
      )
      checkAnswers(t, answers, tasks)
      await tellAgain(service, tasks)
      await checkBooks(t, service, sql, { lost: await lostSubmits(sql, CAN_BE_ASKED) })
    })
  })
