/** While NATS is away a sweep takes a task on that no process has had, long before those that one may have. */
import t from 'tap'
import { eventually } from '../../support/eventually.ts'
import { startTasks } from './support.ts'

const HOUR_MS = 3_600_000
const tasks = await startTasks(t)
const { database } = tasks

/** A sweep of a process whose clock says this. */
async function sweepAt(now: number): Promise<void> {
  const worker = tasks.worker(t, { now: () => now })
  worker.kill()
  await worker.swept()
}

t.test('without NATS a new task is taken on within a second', async (t) => {
  const account = await tasks.newAccount()
  await tasks.engines.stopEngine('nats')
  const order = tasks.order(account, 'film', 'new without messages')
  const answer = tasks.submit(order)
  const id = await eventually('its row', async () => {
    const { hold } = await database.calls.find(order.caller.request.requestId).catch(() => ({ hold: null }))
    return hold?.ref
  })
  const read = async () => (await database.tasks.read([id]))[0]
  const { touchedAt } = (await read())!
  await sweepAt(touchedAt)
  t.match(await read(), { state: 'waiting' }, 'its message may be on the way to another process')
  await sweepAt(touchedAt + 1_000)
  t.match(await read(), { state: 'queued', chain: 1 })
  t.match(await answer, { id })
  await sweepAt(touchedAt + 2_000)
  t.match(await read(), { state: 'queued', chain: 1 }, 'a poll has time')
  await sweepAt(Date.now() + HOUR_MS / 2)
  await tasks.reached(id, 'succeeded')
})
