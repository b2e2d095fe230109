import t from 'tap'
import { settler } from '../../../pipelines/settlement/settlement.ts'
import { newAccount, openMigrated } from '../../src/postgres/support.ts'
import { startEngines, testDataDir } from '../../support/engines.ts'
import { until } from '../../support/eventually.ts'
import { connectNats, hurried, startGateway } from './support.ts'

const engines = await startEngines(t, { only: ['nats', 'postgres'] })
const { database } = await openMigrated(t, engines.databaseUrl)

t.test('a fault after a commit is logged, and what comes after it is booked all the same', async (t) => {
  const account = await newAccount(database)
  const nats = connectNats(t, engines.natsUrl)
  const gateway = await startGateway(t, { directory: await testDataDir(t), nats, database })
  const told: string[] = []
  let faults = 0
  const booking = settler({
    nats: connectNats(t, engines.natsUrl),
    database,
    onBookedRows: () => {
      if (faults++ < 2) throw new Error('a fault elsewhere')
    },
    onMalformed: () => undefined,
    log: { info() {}, warn() {}, error: (_, message) => void told.push(message) },
    scheduler: hurried,
  })
  t.teardown(() => booking.stop(1_000))
  for (let call = 0; call < 5; call++) {
    await gateway.call(account, 1n)
    t.equal(await gateway.publisher.drain(10_000), true)
  }
  t.equal((await database.readWallets([account]))[0]?.used, 5n)
  t.equal(told.length, 2)
  await until('nothing waits to be booked', () => booking.waiting === 0)
  t.equal(booking.trouble, null)
})
