import t from 'tap'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { until } from '../../support/eventually.ts'
import { startTasks } from './support.ts'

/** Five seconds of film. */
const HOLD = 12.5

t.test('a capped key orders what its cap covers over all processes, and spends its charges', async (t) => {
  const tasks = await startTasks(t)
  const { database } = tasks
  tasks.worker(t)
  const account = await tasks.newAccount(1000n, 30n)
  const order = (prompt: string) => tasks.submit(tasks.order(account, 'film', prompt, { until: 'ended' }))
  const outcomes = await Promise.allSettled(['one', 'two', 'three', 'four'].map(order))
  const made = outcomes.filter((outcome) => outcome.status === 'fulfilled').map(({ value }) => value)
  t.equal(made.length, Math.floor(30 / HOLD))
  for (const outcome of outcomes)
    if (outcome.status === 'rejected')
      t.match(outcome.reason, { code: 'quota_exceeded', status: 402, message: /spend cap/ })
  const charged = made.reduce((sum, { cost }) => sum + (cost ?? 0n), 0n)
  t.ok(charged > 0n)
  await until('all of it is spent', async () => {
    const { grant } = await database.keys.show(account.keyId)
    return grant?.spent === charged
  })
  t.ok(charged <= 30n * ONE_CREDIT)
  t.equal((await database.audits.verifyWallets()).ok, true)
})
