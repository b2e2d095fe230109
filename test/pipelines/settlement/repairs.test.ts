import { jetstreamManager } from '@nats-io/jetstream'
import t from 'tap'
import { settlementPublisher } from '../../../pipelines/settlement/settlement.ts'
import { BOOKED_SUBJECT, SETTLEMENT_STREAM, SETTLEMENT_SUBJECT } from '../../../schemas/events/event.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { openJournal } from '../../../src/journal/journal.ts'
import { Connection } from '../../../src/nats/connection.ts'
import type { Nats } from '../../../src/nats/nats.ts'
import { newAccount, openMigrated, settlement } from '../../src/postgres/support.ts'
import { startEngines, testDataDir } from '../../support/engines.ts'
import { admission, connectNats, hurried, silent, startGateway, startSettler } from './support.ts'

const engines = await startEngines(t, { only: ['nats', 'postgres'] })
const { database, sql } = await openMigrated(t, engines.databaseUrl)

const countOf = async (accountId: string) => {
  const [row] = await sql<[{ count: number }]>`
    SELECT count(*)::int AS count FROM usage_rows WHERE account_id = ${accountId}`
  return row.count
}
const until = async (isDone: () => boolean | Promise<boolean>) => {
  while (!(await isDone())) await new Promise((resolve) => setTimeout(resolve, 5))
}
const isStored = (nats: Nats, subject: string, id: string, payload: Buffer) =>
  new Promise<boolean>((resolve) => {
    nats.publish(subject, id, payload, (error) => resolve(error === null))
  })

t.test('a message that is stored twice is booked once, and both notifications hold the totals', async (t) => {
  const account = await newAccount(database)
  const nats = connectNats(t, engines.natsUrl)
  const listener = connectNats(t, engines.natsUrl)
  const notifications: { batches: string[]; wallets: { used: string }[] }[] = []
  listener.listen(
    BOOKED_SUBJECT,
    (payload) => notifications.push(JSON.parse(Buffer.from(payload).toString())),
    () => undefined,
  )
  await until(() => listener.health().isConnected)
  await listener.ping()
  startSettler(t, { nats, database })
  const payload = Buffer.from(`${JSON.stringify(settlement(account, { cost: '11' }))}\n`)
  for (const id of ['journal.one', 'journal.two']) {
    await until(() => isStored(nats, `${SETTLEMENT_SUBJECT}.journal`, id, payload))
    await until(() => notifications.some(({ batches }) => batches.includes(id)))
  }
  t.equal(await countOf(account), 1)
  for (const { wallets } of notifications) t.match(wallets, [{ used: '11' }])
})

t.test('a message that is no settlement harms nobody and is kept', async (t) => {
  const account = await newAccount(database)
  const nats = connectNats(t, engines.natsUrl)
  const { malformed } = startSettler(t, { nats, database })
  const good = JSON.stringify(settlement(account, { cost: '13' }))
  const payload = Buffer.from(`not json\n${good}\n{"request_id":"x"}\n`)
  await until(() => isStored(nats, `${SETTLEMENT_SUBJECT}.foreign`, 'foreign.1', payload))
  await until(async () => (await countOf(account)) === 1)
  await until(() => malformed.length === 2)
  t.same(
    malformed.map(({ line, messageId }) => [line, messageId]),
    [
      ['not json', 'foreign.1'],
      ['{"request_id":"x"}', 'foreign.1'],
    ],
  )
  const gateway = await startGateway(t, { directory: await testDataDir(t), nats, database })
  await gateway.call(account, 1n)
  t.equal(await gateway.publisher.drain(10_000), true, 'what comes after it is booked')
})

t.test('a settlement of an unknown account is put aside and holds nothing back', async (t) => {
  const account = await newAccount(database)
  const nats = connectNats(t, engines.natsUrl)
  startSettler(t, { nats, database })
  const gateway = await startGateway(t, { directory: await testDataDir(t), nats, database })
  await Promise.all([gateway.call(account, 1n), gateway.call(newId('acc'), 1n), gateway.call(account, 1n)])
  t.equal(await gateway.publisher.drain(10_000), true)
  t.equal(await countOf(account), 2)
  t.match((await database.verifyWallets()).differences, [{ kind: 'settlement_unbooked' }])
  await sql`DELETE FROM settlements_refused`
})

t.test('lost notifications are replaced by a query of PostgreSQL', async (t) => {
  const account = await newAccount(database)
  const nats = connectNats(t, engines.natsUrl)
  // As if every word of the settler to this gateway were lost.
  const deaf = { ...nats, listen: () => () => undefined }
  startSettler(t, { nats, database })
  const gateway = await startGateway(t, {
    directory: await testDataDir(t),
    nats: deaf,
    database,
    scheduler: hurried,
  })
  await Promise.all(Array.from({ length: 20 }, () => gateway.call(account, 2n)))
  t.equal(await gateway.publisher.drain(null), true)
  t.equal(await countOf(account), 20)
  const costs = gateway.notifications.reduce(
    (sum, notifications) => sum + (notifications.costs.get(account) ?? 0n),
    0n,
  )
  t.equal(costs, 40n)
  t.match(gateway.notifications.at(-1)?.wallets, [{ accountId: account, used: 40n }])
})

t.test('a stream that loses what it had stored is filled again from the journal', async (t) => {
  const account = await newAccount(database)
  const nats = connectNats(t, engines.natsUrl)
  const gateway = await startGateway(t, {
    directory: await testDataDir(t),
    nats,
    database,
    scheduler: hurried,
  })
  await Promise.all(Array.from({ length: 30 }, () => gateway.call(account, 2n)))
  const connection = new Connection(engines.natsUrl, 'test', silent)
  t.teardown(() => connection.close())
  await until(() => connection.current !== null)
  const manager = await jetstreamManager(connection.current!)
  await until(async () => (await manager.streams.info(SETTLEMENT_STREAM)).state.messages > 0)
  await manager.streams.delete(SETTLEMENT_STREAM)
  startSettler(t, { nats, database })
  t.equal(await gateway.publisher.drain(null), true)
  t.equal(await countOf(account), 30)
  t.equal((await database.readWallets([account]))[0]?.used, 60n)
})

t.test(
  'a gateway that dies leaves its settlements to its successor, and open calls cost nothing',
  async (t) => {
    const account = await newAccount(database)
    const nats = connectNats(t, engines.natsUrl)
    const directory = await testDataDir(t)
    // Nothing gets out of this one before it dies.
    const journal = await openJournal({ directory: `${directory}/journal`, log: silent })
    const cut = { publish: () => undefined, listen: () => () => undefined }
    const first = settlementPublisher({
      journal,
      nats: cut,
      database,
      onBooked: () => undefined,
      log: silent,
    })
    const [done, open] = [
      [newId('req'), newId('req')],
      [newId('req'), newId('req')],
    ]
    const admit = (requestId: string) =>
      new Promise<void>((resolve) => {
        const ticket = journal.admit(admission(requestId, account), () => {
          if (done.includes(requestId))
            journal.settle(ticket, settlement(account, { request_id: requestId, cost: '9' }))
          resolve()
        })
      })
    await Promise.all([...done, ...open].map(admit))
    await new Promise((resolve) => setImmediate(resolve))
    first.stop()

    const gateway = await startGateway(t, { directory, nats, database })
    t.match(gateway.journal.recovered, { interrupted: 2, unbooked: 4 })
    t.equal(gateway.journal.recoveredCost(account), 18n)
    startSettler(t, { nats, database })
    t.equal(await gateway.publisher.drain(10_000), true)
    const rows = await sql<{ request_id: string; status: string; cost: bigint }[]>`
    SELECT request_id, status, cost FROM usage_rows WHERE account_id = ${account}`
    t.equal(rows.length, 4)
    for (const { request_id, status, cost } of rows)
      t.same([status, cost], done.includes(request_id) ? ['success', 9n] : ['interrupted', 0n])
    t.same(new Set(rows.map(({ request_id }) => request_id)), new Set([...done, ...open]))
    t.equal(gateway.journal.recoveredCost(account), 0n)
    t.same((await database.verifyWallets()).differences, [])
  },
)
