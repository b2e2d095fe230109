/**
 * Batches whose notification does not come are looked up in PostgreSQL, whatever happens meanwhile to them, to their
 * files or to the clock.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { BOOKED_SUBJECT } from '../../../schemas/events/event.ts'
import { diskFiles, type JournalFiles } from '../../../src/journal/files.ts'
import { testDataDir } from '../../support/engines.ts'
import { until } from '../../support/eventually.ts'
import { clockToSetBack, hurried, startSettlement, type TestGateway } from './support.ts'

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
async function callOneByOne({ call, publisher }: TestGateway, account: string, count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    await call(account, 1n)
    await new Promise<void>((resolve) => publisher.callWhenStored(() => resolve()))
  }
}

const isAwaited = () => true
const segmentsIn = (directory: string): string[] =>
  readdirSync(join(directory, 'journal')).filter((name) => name.endsWith('.journal'))

t.test('batches that are confirmed while they wait to be looked up do not hold up later ones', async (t) => {
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
})

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
