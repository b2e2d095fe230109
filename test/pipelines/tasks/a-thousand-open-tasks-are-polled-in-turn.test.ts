/** A thousand open tasks are each polled in time. See docs/failure-modes.md, "Money", row 23. */
import t from 'tap'
import { taskMessages } from '../../../pipelines/tasks/worker/messages.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { openNats } from '../../../src/nats/nats.ts'
import { connect } from '../../../src/postgres/connection.ts'
import { hold } from '../../src/postgres/tasks/support.ts'
import { until } from '../../support/eventually.ts'
import { silent, startTasks } from './support.ts'

const TASKS = 1_000
const LOOKS = 4
/** The upstream answers none before it is asked about so many at a time: one after the other, none would be answered. */
const AT_ONCE = 50
const WORKERS = 2

const tasks = await startTasks(t)
const { database, engines } = tasks

/** Tasks that an upstream has, as they would have come to be one by one. */
async function acceptedTasks(accountId: string): Promise<string[]> {
  const sql = connect(engines.databaseUrl, { max: 1, name: 'test' })
  const ids = Array.from({ length: TASKS }, () => newId('vid'))
  const like = await hold(database, accountId, 10n)
  await sql.begin(async (transaction) => {
    await transaction`
      INSERT INTO tasks (id, kind, account_id, key_id, request_id, model, protocol, job, price, hold, is_early, is_awaited,
        channel_ids, state, channel_id, upstream_model, upstream_id, submitted_at, accepted_at, deadline_at, touched_at)
      SELECT new.id, kind, account_id, key_id, 'req_' || new.id, 'film', protocol, job, price, hold, is_early, is_awaited,
        channel_ids, 'queued', 'first', 'film-v1', 'up-' || new.id, submitted_at, submitted_at, deadline_at, touched_at
      FROM tasks, unnest(${ids}::text[]) AS new(id) WHERE tasks.id = ${like.id}`
    await transaction`
      INSERT INTO holds (ref, account_id, amount) SELECT new.id, ${accountId}, 10 FROM unnest(${ids}::text[]) AS new(id)`
    await transaction`
      INSERT INTO ledger_entries (account_id, kind, amount, ref)
      SELECT ${accountId}, 'hold', -10, new.id FROM unnest(${ids}::text[]) AS new(id)`
    await transaction`
      UPDATE wallets SET balance = balance - ${TASKS * 10}, held = held + ${TASKS * 10}, version = version + 1
      WHERE account_id = ${accountId}`
  })
  await sql.end()
  return ids
}

t.test('each is polled as often as the others, many at a time', async (t) => {
  const { account } = await tasks.newAccount()
  const ids = await acceptedTasks(account.id)
  const looks = new Map<string, number>(ids.map((id) => [`up-${id}`, 0]))
  const enough = Promise.withResolvers<void>()
  let writes = 0
  let asking = 0
  const calls = {
    send: async ({ url }: { url: string }) => {
      const id = url.split('/').at(-1)!
      if (++asking === AT_ONCE) enough.resolve()
      await enough.promise
      looks.set(id, looks.get(id)! + 1)
      return { status: 200, header: () => null, body: Buffer.from('{"state":"queued"}') }
    },
  }
  const counting = {
    ...database,
    tasks: {
      ...database.tasks,
      applyTransition: (...of: Parameters<typeof database.tasks.applyTransition>) => {
        writes++
        return database.tasks.applyTransition(...of)
      },
    },
  }
  // Two processes share the work.
  const workers = Array.from({ length: WORKERS }, () =>
    tasks.worker(t, {
      calls: { ...calls, headersOf: async () => [] },
      database: counting,
      hurry: 1,
    }),
  )
  const nats = openNats({ url: engines.natsUrl, name: 'test', log: silent })
  t.teardown(() => nats.close())
  const messages = taskMessages(nats, silent)
  for (const id of ids) messages.publish({ id, chain: 0 })
  await until('each task was polled', () => Math.min(...looks.values()) >= LOOKS)
  for (const { kill } of workers) kill()
  const most = Math.max(...looks.values())
  t.ok(most <= LOOKS + 3, `all were polled ${LOOKS} times, none more than ${most}`)
  t.equal(writes, 0, 'a look that changes nothing writes nothing')
})
