import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { newAccount, openMigrated, settlement } from '../../src/postgres/support.ts'
import { startEngines, testDataDir } from '../../support/engines.ts'
import { connectNats, startGateway, startSettler } from './support.ts'

const CALLS = 1_000

const engines = await startEngines(t, { only: ['nats', 'postgres'] })
const { database, sql } = await openMigrated(t, engines.databaseUrl)

t.test('calls of two gateways, through two settlers, are each booked once', async (t) => {
  const accounts = await Promise.all([newAccount(database), newAccount(database)])
  const nats = connectNats(t, engines.natsUrl)
  const directories = await Promise.all([testDataDir(t), testDataDir(t)])
  const gateways = await Promise.all(
    directories.map((directory) => startGateway(t, { directory, nats, database })),
  )
  startSettler(t, { nats: connectNats(t, engines.natsUrl), database })
  startSettler(t, { nats: connectNats(t, engines.natsUrl), database })
  const requestIds = await Promise.all(
    Array.from({ length: CALLS }, (_, at) =>
      gateways[at % 2]!.call(accounts[at % 3 === 0 ? 0 : 1]!, BigInt(at)),
    ),
  )
  for (const { publisher } of gateways) t.equal(await publisher.drain(20_000), true)

  const rows = await sql<{ request_id: string; cost: bigint }[]>`SELECT request_id, cost FROM usage_rows`
  t.same(new Set(rows.map((row) => row.request_id)), new Set(requestIds))
  t.equal(rows.length, CALLS)
  t.equal((await database.verifyWallets()).ok, true)

  const expected = new Map([0, 1].map((which) => [accounts[which], 0n]))
  for (let at = 0; at < CALLS; at++) {
    const account = accounts[at % 3 === 0 ? 0 : 1]
    expected.set(account, expected.get(account)! + BigInt(at))
  }
  // Of the key as well, which may have a cap: all of it, whose account it was.
  expected.set(settlement('').key_id, (BigInt(CALLS) * BigInt(CALLS - 1)) / 2n)
  const told = new Map<string, bigint>()
  for (const { notifications } of gateways)
    for (const { costs } of notifications)
      for (const [id, cost] of costs) told.set(id, (told.get(id) ?? 0n) + cost)
  t.same(told, expected, 'every gateway gets the cost of its own calls')
  const wallets = await database.readWallets(accounts)
  for (const { notifications } of gateways)
    for (const wallet of wallets) {
      const known = notifications
        .flatMap((each) => each.wallets)
        .filter(({ accountId }) => accountId === wallet.accountId)
      t.same(
        known.reduce((a, b) => (b.version > a.version ? b : a)),
        wallet,
        'every gateway has the last totals',
      )
    }

  for (const { publisher, journal } of gateways) {
    publisher.stop()
    await journal.close()
  }
  for (const directory of directories) t.same(readdirSync(join(directory, 'journal')), ['id', 'spare'])
})
