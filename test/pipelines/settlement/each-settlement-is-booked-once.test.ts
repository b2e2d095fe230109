import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import t, { type Test } from 'tap'
import { SettlementPublisher } from '../../../pipelines/settlement/publisher.ts'
import { BOOKED_SUBJECT, SETTLEMENT_STREAM, SETTLEMENT_SUBJECT } from '../../../schemas/events/event.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { openJournal } from '../../../src/journal/journal.ts'
import { Connection } from '../../../src/nats/connection.ts'
import type { Nats } from '../../../src/nats/nats.ts'
import { settlement } from '../../src/postgres/support.ts'
import { testDataDir } from '../../support/engines.ts'
import { until } from '../../support/eventually.ts'
import { admission, clockToSetBack, hurried, NO_NATS, silent, startSettlement } from './support.ts'

const CALLS = 1_000

const { engines, database, sql, connect, gateway: startGateway, ...bench } = await startSettlement(t)

const countOf = async (accountId: string) => (await bench.rowsOf(accountId)).length
async function openManager(t: Test) {
  const connection = new Connection(engines.natsUrl, 'test', silent)
  t.teardown(() => connection.close())
  await until('the connection is open', () => connection.current !== null)
  return jetstreamManager(connection.current!)
}
/** The stream takes no message of more bytes, until the test is over. */
async function takesAtMost(t: Test, bytes: number) {
  const manager = await openManager(t)
  const withLimit = (max_msg_size: number) => manager.streams.update(SETTLEMENT_STREAM, { max_msg_size })
  await withLimit(bytes)
  t.teardown(() => withLimit(-1))
  return manager
}
const isStored = (nats: Nats, subject: string, id: string, payload: Buffer) =>
  new Promise<boolean>((resolve) => {
    nats.publish(subject, id, payload, (error) => resolve(error === null))
  })

t.test('calls of two gateways, through two settlers, are each booked once', async (t) => {
  const accounts = await Promise.all([bench.newAccount(), bench.newAccount()])
  const directories = await Promise.all([testDataDir(t), testDataDir(t)])
  const gateways = await Promise.all(directories.map((directory) => startGateway(t, { directory })))
  bench.settler(t)
  bench.settler(t)
  const requestIds = await Promise.all(
    Array.from({ length: CALLS }, (_, at) =>
      gateways[at % 2]!.call(accounts[at % 3 === 0 ? 0 : 1]!, BigInt(at)),
    ),
  )
  for (const { publisher } of gateways) t.equal(await publisher.drain(null), true)

  const rows = (await Promise.all(accounts.map(bench.rowsOf))).flat()
  t.same(new Set(rows), new Set(requestIds))
  t.equal(rows.length, CALLS)
  t.equal((await database.audits.verifyWallets()).ok, true)

  const expected = new Map([0, 1].map((which) => [accounts[which], 0n]))
  for (let at = 0; at < CALLS; at++) {
    const account = accounts[at % 3 === 0 ? 0 : 1]
    expected.set(account, expected.get(account)! + BigInt(at))
  }
  // Of the key as well, which may have a cap: all of it, whose account it was.
  expected.set(settlement('').key_id, (BigInt(CALLS) * BigInt(CALLS - 1)) / 2n)
  const announced = new Map<string, bigint>()
  for (const { notifications } of gateways)
    for (const { costs } of notifications)
      for (const [id, cost] of costs) announced.set(id, (announced.get(id) ?? 0n) + cost)
  t.same(announced, expected, 'every gateway gets the cost of its calls')
  const wallets = await database.wallets.read(accounts)
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

t.test('a message that is stored twice is booked once, and both notifications hold the totals', async (t) => {
  const account = await bench.newAccount()
  const nats = connect(t)
  const listener = connect(t)
  const notifications: { batches: string[]; wallets: { used: string }[] }[] = []
  listener.listen(
    BOOKED_SUBJECT,
    (payload) => notifications.push(JSON.parse(Buffer.from(payload).toString())),
    () => undefined,
  )
  await until('the listener is connected', () => listener.health().isConnected)
  await listener.ping()
  bench.settler(t)
  const payload = Buffer.from(`${JSON.stringify(settlement(account, { cost: '11' }))}\n`)
  for (const id of ['journal.one', 'journal.two']) {
    await until('each copy is stored', () => isStored(nats, `${SETTLEMENT_SUBJECT}.journal`, id, payload))
    await until('each copy is announced', () => notifications.some(({ batches }) => batches.includes(id)))
  }
  t.equal(await countOf(account), 1)
  for (const { wallets } of notifications) t.match(wallets, [{ used: '11' }])
})

t.test('a message that is no settlement harms nobody and is kept', async (t) => {
  const account = await bench.newAccount()
  const nats = connect(t)
  const { malformed } = bench.settler(t)
  const good = JSON.stringify(settlement(account, { cost: '13' }))
  const payload = Buffer.from(`not json\n${good}\n{"request_id":"x"}\n`)
  await until('the message is stored', () =>
    isStored(nats, `${SETTLEMENT_SUBJECT}.foreign`, 'foreign.1', payload),
  )
  await until('the good line is booked', async () => (await countOf(account)) === 1)
  await until('both bad lines are reported', () => malformed.length === 2)
  t.same(
    malformed.map(({ line, messageId }) => [line, messageId]),
    [
      ['not json', 'foreign.1'],
      ['{"request_id":"x"}', 'foreign.1'],
    ],
  )
  const gateway = await startGateway(t)
  await gateway.call(account, 1n)
  t.equal(await gateway.publisher.drain(null), true, 'what comes after it is booked')
})

t.test('a settlement of an unknown account is put aside and holds nothing back', async (t) => {
  const account = await bench.newAccount()
  bench.settler(t)
  const gateway = await startGateway(t)
  await Promise.all([gateway.call(account, 1n), gateway.call(newId('acc'), 1n), gateway.call(account, 1n)])
  t.equal(await gateway.publisher.drain(null), true)
  t.equal(await countOf(account), 2)
  t.match((await database.audits.verifyWallets()).differences, [{ kind: 'settlement_unbooked' }])
  await sql`DELETE FROM settlements_refused`
})

t.test('lost notifications are replaced by a query of PostgreSQL', async (t) => {
  const account = await bench.newAccount()
  const nats = connect(t)
  // As if every word of the settler to this gateway were lost.
  const deaf = { ...nats, listen: () => () => undefined }
  bench.settler(t)
  const gateway = await startGateway(t, { nats: deaf, scheduler: hurried })
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
  const account = await bench.newAccount()
  const gateway = await startGateway(t, { scheduler: hurried })
  await Promise.all(Array.from({ length: 30 }, () => gateway.call(account, 2n)))
  const manager = await openManager(t)
  await until(
    'the stream has messages',
    async () => (await manager.streams.info(SETTLEMENT_STREAM)).state.messages > 0,
  )
  await manager.streams.delete(SETTLEMENT_STREAM)
  bench.settler(t)
  t.equal(await gateway.publisher.drain(null), true)
  t.equal(await countOf(account), 30)
  t.equal(await bench.usedOf(account), 60n)
})

t.test('settlements that the stream does not take are booked, each once', async (t) => {
  const account = await bench.newAccount()
  const manager = await takesAtMost(t, 1)
  bench.settler(t)
  bench.settler(t)
  const gateways = [
    await startGateway(t, { scheduler: hurried }),
    await startGateway(t, { scheduler: hurried }),
  ]
  await Promise.all(gateways.flatMap(({ call }) => Array.from({ length: 30 }, () => call(account, 2n))))
  for (const { publisher } of gateways) t.equal(await publisher.drain(null), true)
  t.equal((await manager.streams.info(SETTLEMENT_STREAM)).state.messages, 0)
  t.equal(await countOf(account), 60)
  t.equal(await bench.usedOf(account), 120n)
})

t.test('a batch that the stream does not take is booked, though it takes others', async (t) => {
  const account = await bench.newAccount()
  await takesAtMost(t, 10_000)
  bench.settler(t)
  const gateway = await startGateway(t, { scheduler: hurried })
  const large = await Promise.all(Array.from({ length: 100 }, () => gateway.call(account, 2n)))
  const isBooked = async () => {
    const rows = new Set(await bench.rowsOf(account))
    return large.every((id) => rows.has(id))
  }
  let small = 0
  for (; !(await isBooked()); small++) await gateway.call(account, 2n)
  t.equal(await gateway.publisher.drain(null), true)
  t.equal(await bench.usedOf(account), 2n * BigInt(large.length + small))
})

t.test('settlements that the stream has and does not deliver are booked', async (t) => {
  const account = await bench.newAccount()
  const nats = connect(t)
  // A consumer without a leader.
  bench.settler(t, { nats: { ...nats, consume: () => () => undefined } })
  const gateway = await startGateway(t, { scheduler: hurried })
  await Promise.all(Array.from({ length: 30 }, () => gateway.call(account, 2n)))
  t.equal(await gateway.publisher.drain(null), true)
  t.equal(await bench.usedOf(account), 60n)
})

t.test('a clock that is set back does not put off what is sent without the stream', async (t) => {
  const account = await bench.newAccount()
  const nats = connect(t)
  const { scheduler, setBack } = clockToSetBack()
  let refusals = 0
  const publish: Nats['publish'] = (_subject, _id, _payload, done) =>
    queueMicrotask(() => {
      refusals++
      done(new Error('The stream has no leader.'))
    })
  bench.settler(t)
  const gateway = await startGateway(t, { nats: { ...nats, publish }, scheduler })
  await gateway.call(account, 2n)
  await until('the stream refuses', () => refusals > 0)
  setBack(24 * 3_600_000)
  t.equal(await gateway.publisher.drain(null), true)
  t.equal(await bench.usedOf(account), 2n)
})

t.test('a dead gateway leaves its settlements to its successor, and open calls cost nothing', async (t) => {
  const account = await bench.newAccount()
  const directory = await testDataDir(t)
  // Nothing gets out of this one before it dies.
  const journal = await openJournal({ directory: `${directory}/journal`, log: silent })
  const first = new SettlementPublisher({
    journal,
    nats: NO_NATS,
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

  const gateway = await startGateway(t, { directory })
  t.match(gateway.journal.recovered, { interrupted: 2, unbooked: 4 })
  t.equal(gateway.journal.recoveredCost(account), 18n)
  bench.settler(t)
  t.equal(await gateway.publisher.drain(null), true)
  const rows = await sql<{ request_id: string; status: string; cost: bigint }[]>`
    SELECT request_id, status, cost FROM usage_rows WHERE account_id = ${account}`
  t.equal(rows.length, 4)
  for (const { request_id, status, cost } of rows)
    t.same([status, cost], done.includes(request_id) ? ['success', 9n] : ['interrupted', 0n])
  t.same(new Set(rows.map(({ request_id }) => request_id)), new Set([...done, ...open]))
  t.equal(gateway.journal.recoveredCost(account), 0n)
  t.same((await database.audits.verifyWallets()).differences, [])
})

t.test('a fault after a commit is logged, and what comes after it is booked all the same', async (t) => {
  const account = await bench.newAccount()
  const gateway = await startGateway(t)
  const told: string[] = []
  let faults = 0
  const { running: booking } = bench.settler(t, {
    onBookedRows: () => {
      if (faults++ < 2) throw new Error('a fault elsewhere')
    },
    log: { info() {}, warn() {}, error: (_, message) => void told.push(message) },
    scheduler: hurried,
  })
  for (let call = 0; call < 5; call++) {
    await gateway.call(account, 1n)
    t.equal(await gateway.publisher.drain(null), true)
  }
  t.equal(await bench.usedOf(account), 5n)
  t.equal(told.length, 2)
  await until('nothing waits to be booked', () => booking.waiting === 0)
  t.equal(booking.trouble, null)
})
