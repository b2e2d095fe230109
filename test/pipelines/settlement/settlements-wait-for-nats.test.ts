import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { newAccount, openMigrated } from '../../src/postgres/support.ts'
import { startEngines, testDataDir } from '../../support/engines.ts'
import { connectNats, startGateway, startSettler } from './support.ts'

const engines = await startEngines(t, { only: ['nats', 'postgres'] })
const { database, sql } = await openMigrated(t, engines.databaseUrl)

const rowsOf = async (accountId: string) =>
  (
    await sql<{ request_id: string }[]>`SELECT request_id FROM usage_rows WHERE account_id = ${accountId}`
  ).map((row) => row.request_id)

t.test('NATS down: calls go on, are kept in the journal, and booked when it is back', async (t) => {
  const account = await newAccount(database)
  const nats = connectNats(t, engines.natsUrl)
  const gateway = await startGateway(t, { directory: await testDataDir(t), nats, database })
  startSettler(t, { nats: connectNats(t, engines.natsUrl), database })
  await engines.stopEngine('nats')
  const requestIds = await Promise.all(Array.from({ length: 300 }, () => gateway.call(account, 7n)))
  await sleep(50)
  t.equal(gateway.journal.depth().settlementsUnbooked, 300)
  t.same(await rowsOf(account), [])
  await engines.startEngine('nats')
  t.equal(await gateway.publisher.drain(20_000), true)
  t.same(new Set(await rowsOf(account)), new Set(requestIds))
  t.equal((await database.readWallets([account]))[0]?.used, 2_100n)
})

t.test('NATS killed again and again while settlements are published: each is booked once', async (t) => {
  const account = await newAccount(database)
  const nats = connectNats(t, engines.natsUrl)
  const gateway = await startGateway(t, { directory: await testDataDir(t), nats, database })
  startSettler(t, { nats: connectNats(t, engines.natsUrl), database })
  const requestIds: string[] = []
  for (let kill = 0; kill < 4; kill++) {
    for (let call = 0; call < 60; call++) {
      requestIds.push(await gateway.call(account, 3n))
      if (call === 30) engines.killEngine('nats')
      await sleep(2)
    }
  }
  t.equal(await gateway.publisher.drain(30_000), true)
  const rows = await rowsOf(account)
  t.equal(rows.length, requestIds.length)
  t.same(new Set(rows), new Set(requestIds))
  t.equal((await database.readWallets([account]))[0]?.used, 3n * BigInt(requestIds.length))
  t.equal((await database.verifyWallets()).ok, true)
})
