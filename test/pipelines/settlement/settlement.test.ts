/** Settlements on their way from the journal into the books. */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import t, { type Test } from 'tap'
import { SettlementPublisher } from '../../../pipelines/settlement/publisher.ts'
import { BOOKED_SUBJECT, SETTLEMENT_STREAM, SETTLEMENT_SUBJECT } from '../../../schemas/events/event.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { BATCH_FULL_SETTLEMENTS } from '../../../src/journal/batches.ts'
import { diskFiles, type JournalFiles } from '../../../src/journal/files.ts'
import { openJournal } from '../../../src/journal/journal.ts'
import { Connection } from '../../../src/nats/connection.ts'
import type { Nats } from '../../../src/nats/nats.ts'
import { settlement } from '../../src/postgres/support.ts'
import { testDataDir } from '../../support/engines.ts'
import { until } from '../../support/eventually.ts'
import {
  admission,
  clockToSetBack,
  hurried,
  NO_NATS,
  silent,
  startSettlement,
  type TestGateway,
} from './support.ts'

t.test('each settlement is booked once', async (t) => {
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

  t.test(
    'a message that is stored twice is booked once, and both notifications hold the totals',
    async (t) => {
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
    },
  )

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
      onNotificationsMissed: () => undefined,
      isAwaited: () => false,
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
})

t.test('late batches are looked up', async (t) => {
  // * Batches whose notification does not come are looked up in PostgreSQL, whatever happens meanwhile to them, to their
  // files or to the clock.
  /** A few calls each. */
  const SEGMENT_BYTES = 4_000

  const { database, connect, gateway: startGateway, ...bench } = await startSettlement(t)

  /** NATS whose notifications are kept back until they are handed over. */
  async function deafNats(t: Test) {
    const nats = connect(t)
    const kept = new Map<string, Uint8Array>()
    let hear: (payload: Uint8Array) => void = () => undefined
    nats.listen(
      BOOKED_SUBJECT,
      (payload) => {
        for (const id of JSON.parse(Buffer.from(payload).toString()).batches) kept.set(id, payload)
      },
      () => undefined,
    )
    await until('the listener is connected', () => nats.health().isConnected)
    await nats.ping()
    const listen: typeof nats.listen = (_subject, heard) => {
      hear = heard
      return () => undefined
    }
    return { nats: { ...nats, listen }, kept, hear: (payload: Uint8Array) => hear(payload) }
  }

  /** Makes calls, each a batch, and waits until JetStream has them. */
  async function callOneByOne(
    { call, publisher }: TestGateway,
    account: string,
    count: number,
  ): Promise<void> {
    for (let at = 0; at < count; at++) {
      await call(account, 1n)
      await new Promise<void>((resolve) => publisher.callWhenStored(() => resolve()))
    }
  }

  const isAwaited = () => true
  const segmentsIn = (directory: string): string[] =>
    readdirSync(join(directory, 'journal')).filter((name) => name.endsWith('.journal'))

  t.test(
    'batches that are confirmed while they wait to be looked up do not hold up later ones',
    async (t) => {
      const account = await bench.newAccount()
      const { nats, kept, hear } = await deafNats(t)
      bench.settler(t)
      let isHeld = true
      let asked = 0
      const slow = {
        ...database,
        bookings: {
          ...database.bookings,
          async readBooked(...args: Parameters<typeof database.bookings.readBooked>) {
            asked++
            const answer = await database.bookings.readBooked(...args)
            while (isHeld) await sleep(5)
            return answer
          },
        },
      }
      const directory = await testDataDir(t)
      const files = { segmentBytes: SEGMENT_BYTES }
      const gateway = await startGateway(t, {
        directory,
        files,
        nats,
        database: slow,
        isAwaited,
        scheduler: hurried,
      })
      await callOneByOne(gateway, account, 60)
      await until('all are booked', () => kept.size === 60)
      await until('the oldest are asked for', () => asked > 0)
      t.ok(segmentsIn(directory).length > 5)
      for (const payload of [...kept.values()].reverse()) hear(payload)
      t.equal(gateway.publisher.inFlight, 0)
      await until('their files are gone', () => segmentsIn(directory).length === 1)
      isHeld = false
      await callOneByOne(gateway, account, 1)
      t.equal(await gateway.publisher.drain(null), true)
      t.equal(await bench.usedOf(account), 61n)
    },
  )

  t.test('a file that cannot be read holds up its own batches alone, however many', async (t) => {
    // More than are looked up in one round.
    const UNREADABLE = 260
    const account = await bench.newAccount()
    const { nats } = await deafNats(t)
    bench.settler(t)
    let isBroken = true
    let failures = 0
    const readable: JournalFiles = {
      ...diskFiles,
      readAt(path, target, position) {
        if (isBroken && path.endsWith('01.journal')) {
          failures++
          throw new Error('input/output error')
        }
        return diskFiles.readAt(path, target, position)
      },
    }
    const directory = await testDataDir(t)
    const segmentBytes = 1_000 * UNREADABLE
    const files = { files: readable, segmentBytes }
    const gateway = await startGateway(t, { directory, files, nats, isAwaited, scheduler: hurried })
    await callOneByOne(gateway, account, UNREADABLE)
    await until('a reading has failed', () => failures > 0)
    let others = 0
    for (; segmentsIn(directory).length < 2; others++) await callOneByOne(gateway, account, 1)
    await callOneByOne(gateway, account, 5)
    const before = gateway.publisher.inFlight
    await until('those of the other file are confirmed', () => gateway.publisher.inFlight <= before - 5)
    t.ok(gateway.publisher.inFlight >= UNREADABLE)
    t.equal(gateway.publisher.readOldestUnbookedAt(), null)
    isBroken = false
    t.equal(await gateway.publisher.drain(null), true)
    t.equal(await bench.usedOf(account), BigInt(UNREADABLE + others + 5))
  })

  t.test('where no answer waits for JetStream, no file is read back', async (t) => {
    const account = await bench.newAccount()
    const { nats } = await deafNats(t)
    bench.settler(t)
    const unreadable: JournalFiles = {
      ...diskFiles,
      readAt() {
        throw new Error('input/output error')
      },
    }
    const gateway = await startGateway(t, { files: { files: unreadable }, nats, scheduler: hurried })
    for (let at = 0; at < 5; at++) await gateway.call(account, 1n)
    t.equal(await gateway.publisher.drain(null), true)
    t.equal(await bench.usedOf(account), 5n)
  })

  t.test('a look-up under way has no effect once the publisher has stopped', async (t) => {
    const account = await bench.newAccount()
    const { nats } = await deafNats(t)
    bench.settler(t)
    let asked = 0
    const held = Promise.withResolvers<void>()
    const slow = {
      ...database,
      bookings: {
        ...database.bookings,
        async readBooked(...args: Parameters<typeof database.bookings.readBooked>) {
          asked++
          await held.promise
          return database.bookings.readBooked(...args)
        },
      },
    }
    const gateway = await startGateway(t, { nats, database: slow, isAwaited, scheduler: hurried })
    await callOneByOne(gateway, account, 3)
    await until('they are booked', async () => (await bench.rowsOf(account)).length === 3)
    await until('they are looked up', () => asked === 3)
    await gateway.abandon()
    held.resolve()
    await sleep(100)
    t.same(gateway.notifications, [])
    t.equal(gateway.journal.depth().settlementsUnbooked, 3)
  })

  t.test('a batch whose file was damaged is confirmed when it is booked, not before', async (t) => {
    const account = await bench.newAccount()
    const directory = await testDataDir(t)
    const said: string[] = []
    const log = { info() {}, warn() {}, error: (_: object, message: string) => void said.push(message) }
    const gateway = await startGateway(t, { directory, isAwaited, scheduler: hurried, log })
    await callOneByOne(gateway, account, 1)
    const path = join(directory, 'journal', segmentsIn(directory)[0]!)
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.fill(0))
    await until('it is looked up', () => said.length > 0)
    t.match(said[0], 'The journal is damaged')
    t.equal(gateway.publisher.inFlight, 1)
    bench.settler(t)
    t.equal(await gateway.publisher.drain(null), true)
    t.equal(await bench.usedOf(account), 1n, 'JetStream had it')
  })

  t.test('a clock that is set back does not put off a look-up', async (t) => {
    const account = await bench.newAccount()
    const { nats } = await deafNats(t)
    bench.settler(t)
    const { scheduler, setBack } = clockToSetBack()
    const gateway = await startGateway(t, { nats, isAwaited, scheduler })
    await callOneByOne(gateway, account, 1)
    setBack(365 * 24 * 3_600_000)
    t.equal(await gateway.publisher.drain(null), true)
  })
})

t.test('settlements wait for engines', async (t) => {
  // Settlements wait in the journal for engines that are away, and each is booked once when they are back.
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

  t.test(
    'answers that wait for JetStream go on while nothing is booked, however long it takes',
    async (t) => {
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
    },
  )

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
})
