import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { settler } from '../../../pipelines/settlement/settlement.ts'
import { newAccount, openMigrated } from '../../src/postgres/support.ts'
import { startEngines, testDataDir } from '../../support/engines.ts'
import { until } from '../../support/eventually.ts'
import { connectNats, silent, startGateway, startSettler } from './support.ts'

const engines = await startEngines(t, { only: ['nats', 'postgres'] })
const { database, sql } = await openMigrated(t, engines.databaseUrl)

t.test('PostgreSQL killed while settlements are booked: each is booked once when it is back', async (t) => {
  const account = await newAccount(database)
  const nats = connectNats(t, engines.natsUrl)
  const gateway = await startGateway(t, { directory: await testDataDir(t), nats, database })
  startSettler(t, { nats: connectNats(t, engines.natsUrl), database })
  startSettler(t, { nats: connectNats(t, engines.natsUrl), database })
  const requestIds: string[] = []
  for (let call = 0; call < 200; call++) {
    requestIds.push(await gateway.call(account, 5n))
    if (call === 60 || call === 120) engines.killEngine('postgres')
    await sleep(2)
  }
  t.equal(await gateway.publisher.drain(30_000), true)
  const rows = await sql<{ request_id: string }[]>`SELECT request_id FROM usage_rows`
  t.equal(rows.length, requestIds.length)
  t.same(new Set(rows.map((row) => row.request_id)), new Set(requestIds))
  const [wallet] = await database.readWallets([account])
  t.equal(wallet?.used, 1_000n)
  t.equal((await database.verifyWallets()).ok, true)
  const totals = gateway.notifications.flatMap(({ wallets }) => wallets)
  t.same(totals.at(-1), wallet, 'the gateway has the last totals')
  t.equal(
    gateway.notifications.reduce((sum, { costs }) => sum + (costs.get(account) ?? 0n), 0n),
    1_000n,
  )
})

t.test('a settler that ends gives what it could not book to the next one', async (t) => {
  const account = await newAccount(database)
  const nats = connectNats(t, engines.natsUrl)
  const gateway = await startGateway(t, { directory: await testDataDir(t), nats, database })
  const away = { ...database, bookSettlements: () => Promise.reject(new Error('PostgreSQL is away')) }
  const received = settler({
    nats: connectNats(t, engines.natsUrl),
    database: away,
    onBookedRows: () => undefined,
    onMalformed: () => undefined,
    log: silent,
  })
  await Promise.all(Array.from({ length: 10 }, () => gateway.call(account, 1n)))
  await until('booking fails', () => received.trouble !== null)
  t.ok(received.waiting > 0)
  await received.stop(50)
  t.equal(received.waiting, 0)
  startSettler(t, { nats: connectNats(t, engines.natsUrl), database })
  t.equal(await gateway.publisher.drain(5_000), true, 'at once, not when JetStream takes the first for dead')
  t.equal((await database.readWallets([account]))[0]?.used, 10n)
})
