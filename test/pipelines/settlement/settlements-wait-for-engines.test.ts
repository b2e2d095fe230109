/** Settlements wait in the journal for engines that are away, and each is booked once when they are back. */
import { setTimeout as sleep } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import t from 'tap'
import { SETTLEMENT_STREAM } from '../../../schemas/events/event.ts'
import { BATCH_FULL_SETTLEMENTS } from '../../../src/journal/batches.ts'
import type { Nats } from '../../../src/nats/nats.ts'
import { testDataDir } from '../../support/engines.ts'
import { until } from '../../support/eventually.ts'
import { clockToSetBack, NO_NATS, silent, startSettlement } from './support.ts'

const { engines, database, connect, gateway: startGateway, ...bench } = await startSettlement(t)

t.test('NATS down: calls go on, are kept in the journal, and booked when it is back', async (t) => {
  const account = await bench.newAccount()
  const gateway = await startGateway(t)
  bench.settler(t)
  await engines.stopEngine('nats')
  const requestIds = await Promise.all(Array.from({ length: 300 }, () => gateway.call(account, 7n)))
  await sleep(50)
  t.equal(gateway.journal.depth().settlementsUnbooked, 300)
  t.same(await bench.rowsOf(account), [])
  await engines.startEngine('nats')
  t.equal(await gateway.publisher.drain(null), true)
  t.same(new Set(await bench.rowsOf(account)), new Set(requestIds))
  t.equal(await bench.usedOf(account), 2_100n)
})

for (const [engine, killedAt, settlers] of [
  ['nats', [30, 90, 150, 210], 1],
  ['postgres', [60, 120], 2],
] as const)
  t.test(`${engine} killed again and again under calls: each is booked once`, async (t) => {
    const account = await bench.newAccount()
    const gateway = await startGateway(t)
    for (let count = 0; count < settlers; count++) bench.settler(t)
    const requestIds: string[] = []
    for (let call = 0; call < 240; call++) {
      requestIds.push(await gateway.call(account, 5n))
      if (killedAt.some((at) => at === call)) engines.killEngine(engine)
      await sleep(2)
    }
    t.equal(await gateway.publisher.drain(null), true)
    const rows = await bench.rowsOf(account)
    t.equal(rows.length, requestIds.length)
    t.same(new Set(rows), new Set(requestIds))
    const [wallet] = await database.wallets.read([account])
    t.equal(wallet?.used, 1_200n)
    t.equal((await database.audits.verifyWallets()).ok, true)
    // A settler may repeat the notification of another test's account.
    const totals = gateway.notifications
      .flatMap(({ wallets }) => wallets)
      .filter(({ accountId }) => accountId === account)
    t.same(totals.at(-1), wallet, 'the gateway has the last totals')
    t.equal(
      gateway.notifications.reduce((sum, { costs }) => sum + (costs.get(account) ?? 0n), 0n),
      1_200n,
    )
  })

t.test('a settler that ends gives what it could not book to the next one', async (t) => {
  const account = await bench.newAccount()
  const gateway = await startGateway(t)
  const nats = connect(t)
  let released = 0
  const { running: received } = bench.settler(t, {
    nats: {
      ...nats,
      consume: (handle) =>
        nats.consume((delivery) =>
          handle({
            ...delivery,
            release(delayMs) {
              released++
              delivery.release(delayMs)
            },
          }),
        ),
    },
    database: {
      ...database,
      bookings: { ...database.bookings, book: () => Promise.reject(new Error('PostgreSQL is away')) },
    },
  })
  await Promise.all(Array.from({ length: 10 }, () => gateway.call(account, 1n)))
  await until('booking fails', () => received.trouble !== null)
  t.ok(received.waiting > 0)
  await received.stop(50)
  t.equal(received.waiting, 0)
  t.ok(released > 0, 'JetStream need not take it for dead first')
  bench.settler(t)
  t.equal(await gateway.publisher.drain(null), true)
  t.equal(await bench.usedOf(account), 10n)
})

t.test('what an earlier process left is stored bit by bit where answers wait for JetStream', async (t) => {
  const account = await bench.newAccount()
  const directory = await testDataDir(t)
  const BATCHES = 40
  const CALLS = BATCHES * BATCH_FULL_SETTLEMENTS
  const killed = await startGateway(t, { directory, nats: NO_NATS })
  for (let batch = 0; batch < BATCHES; batch++)
    await Promise.all(Array.from({ length: BATCH_FULL_SETTLEMENTS }, () => killed.call(account, 2n)))
  await killed.abandon()
  const nats = connect(t)
  let most = 0
  let unanswered = 0
  const counting: Pick<Nats, 'publish' | 'listen' | 'sendDirectly'> = {
    ...nats,
    publish(subject, id, payload, done) {
      most = Math.max(most, ++unanswered)
      nats.publish(subject, id, payload, (error) => {
        unanswered--
        done(error)
      })
    },
  }
  const gateway = await startGateway(t, { directory, nats: counting, isAwaited: () => true })
  t.equal(gateway.journal.recovered.unbooked, CALLS)
  await until('all is stored', () => gateway.journal.untaken === 0 && unanswered === 0)
  t.equal(gateway.publisher.inFlight, BATCHES)
  t.ok(most < BATCHES, `${most} at once`)
  bench.settler(t)
  t.equal(await gateway.publisher.drain(null), true)
  t.equal(await bench.usedOf(account), 2n * BigInt(CALLS))
})

t.test('answers that wait for JetStream go on while nothing is booked, however long it takes', async (t) => {
  // More than were ever held in memory, each a message.
  const CALLS = 1_100
  const account = await bench.newAccount()
  const { call, journal, publisher } = await startGateway(t, { isAwaited: () => true })
  const stored = () =>
    new Promise<void>((resolve, reject) =>
      publisher.callWhenStored((error) => (error === undefined ? resolve() : reject(error))),
    )
  const requestIds: string[] = []
  for (let at = 0; at < CALLS; at++) {
    requestIds.push(await call(account, 3n))
    await stored()
  }
  t.equal(publisher.inFlight, CALLS, 'each is stored, and none is booked')
  bench.settler(t)
  t.equal(await publisher.drain(null), true)
  t.same(new Set(await bench.rowsOf(account)), new Set(requestIds))
  t.equal(await bench.usedOf(account), 3n * BigInt(CALLS))
  t.equal(journal.depth().settlementsUnbooked, 0)
})

t.test('answers wait for JetStream no longer where the clock is set back', async (t) => {
  const account = await bench.newAccount()
  const publish: Nats['publish'] = (_subject, _id, _payload, done) =>
    queueMicrotask(() => done(new Error('There is no leader.')))
  const { scheduler, setBack } = clockToSetBack()
  const { call, publisher } = await startGateway(t, {
    nats: { ...NO_NATS, publish },
    isAwaited: () => true,
    scheduler,
  })
  const ends: (Error | undefined)[] = []
  await call(account, 1n)
  publisher.callWhenStored((error) => ends.push(error))
  setBack(24 * 3_600_000)
  await call(account, 1n)
  publisher.callWhenStored((error) => ends.push(error))
  await until('both answers end', () => ends.length === 2)
  t.match(ends, [/has not stored/, /has not stored/])
  t.equal(publisher.measureWaitMs(), 0)
})

t.test('a full stream: calls go on, are kept in the journal, and booked when there is room', async (t) => {
  const account = await bench.newAccount()
  const { host, username, password } = new URL(engines.natsUrl)
  const connection = await connectNats({ servers: host, user: username, pass: password })
  t.teardown(() => connection.close())
  const { streams } = await jetstreamManager(connection)
  const { config } = await streams.info(SETTLEMENT_STREAM)
  t.teardown(() => streams.update(SETTLEMENT_STREAM, { max_bytes: config.max_bytes }))
  // Room for a full batch, and not for all.
  await streams.update(SETTLEMENT_STREAM, { max_bytes: 150_000 })
  const failures: string[] = []
  const warn = (details: object, message: string) => failures.push(`${message} ${JSON.stringify(details)}`)
  const gateway = await startGateway(t, { log: { ...silent, warn } })
  const count = 5 * BATCH_FULL_SETTLEMENTS
  const requestIds = await Promise.all(Array.from({ length: count }, () => gateway.call(account, 7n)))
  await until('the stream is full', () => failures.length > 0)
  t.match(failures[0], /^Publishing settlements fails; retrying .*maximum bytes exceeded/)
  t.equal(gateway.journal.depth().settlementsUnbooked, count)
  bench.settler(t)
  t.equal(await gateway.publisher.drain(null), true)
  t.same(new Set(await bench.rowsOf(account)), new Set(requestIds))
  t.equal((await streams.info(SETTLEMENT_STREAM)).config.max_bytes, 150_000, 'an operator sets the size')
})
