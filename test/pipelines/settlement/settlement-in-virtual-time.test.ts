/**
 * How long the parts of a settlement wait, how much they take at once, and what they do while an engine fails: in virtual
 * time. `test/simulation` has them together, and `settlement.test.ts` has them on real engines.
 */
import { defer } from 'rxjs'
import t from 'tap'
import { BatchWorker, type Held } from '../../../pipelines/settlement/batch-worker.ts'
import { lookUpLate, type Published } from '../../../pipelines/settlement/look-up.ts'
import {
  decodeCommitNotification,
  decodeSettlements,
  encodeCommitNotification,
  readFirstEnd,
} from '../../../pipelines/settlement/messages.ts'
import { type CommittedWallets, SettlementPublisher } from '../../../pipelines/settlement/publisher.ts'
import { OutageLog, resubscribeOnFault, retryForever } from '../../../pipelines/settlement/retrying.ts'
import { Settler } from '../../../pipelines/settlement/settler.ts'
import { StoredMark } from '../../../pipelines/settlement/stored.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import type { JournalBatch } from '../../../src/journal/batches.ts'
import type { Journal } from '../../../src/journal/journal.ts'
import type { Delivery } from '../../../src/nats/nats.ts'
import { Process, VirtualTime } from '../../simulation/virtual-time.ts'
import { settlement } from '../../src/postgres/support.ts'

/** Enough for a round of hundreds of batches. */
const PROMISE_TURNS = 500

/** A clock, one process that lives by it, and the lines of its log. */
function startClock() {
  const time = new VirtualTime(PROMISE_TURNS)
  const process = new Process(time)
  const logged: string[] = []
  const details: object[] = []
  let behindMs = 0
  const note = (level: string) => (more: object, message: string) => {
    logged.push(`${level}: ${message}`)
    details.push(more)
  }
  return {
    ...{ time, logged, details },
    scheduler: { ...process.scheduler, now: () => time.now - behindMs },
    setBack(ms: number) {
      behindMs += ms
    },
    log: { info: note('info'), warn: note('warn'), error: note('error') },
    /** Resolves after the time; what is settled meanwhile has its consequences. */
    pass: async (ms: number) => {
      const end = time.now + ms
      time.after(ms, () => time.promiseSettled())
      await time.run(end)
    },
    pause: (ms: number) =>
      new Promise<void>((resolve) =>
        time.after(ms, () => {
          resolve()
          time.promiseSettled()
        }),
      ),
  }
}

const encode = (...lines: (Settlement | string)[]) =>
  Buffer.from(lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''))

/** A batch of a journal whose settlements are numbered; it ends with `end`. */
const makeBatch = (end: number, ...settlements: Settlement[]): JournalBatch => ({
  id: `journal.${end}`,
  count: settlements.length,
  end,
  costs: new Map(settlements.map(({ account_id, cost }) => [account_id, BigInt(cost)])),
  payload: () => encode(...settlements),
})
const makeCall = (accountId: string, cost = '1', more: Partial<Settlement> = {}) =>
  settlement(accountId, { cost, ...more })

t.test('messages', async (t) => {
  t.test('each line is a settlement, or is kept with its reason', async (t) => {
    const good = makeCall('acc')
    const { settlements, malformed } = decodeSettlements(
      'm.1',
      encode(good, '', 'not json', '{"request_id":"x"}'),
    )
    t.same(settlements, [good])
    t.match(malformed, [
      { messageId: 'm.1', line: 'not json', reason: /JSON/ },
      { messageId: 'm.1', line: '{"request_id":"x"}', reason: /account_id/ },
    ])
    const padded = Buffer.concat([Buffer.from('##'), encode(good), Buffer.from('##')])
    t.same(decodeSettlements(null, padded.subarray(2, -2)).settlements, [good], 'a part of a buffer')
  })

  t.test('the end of the first call', async (t) => {
    t.equal(
      readFirstEnd(encode(makeCall('a', '1', { created_at: 5 }), makeCall('a', '1', { created_at: 3 }))),
      5,
    )
    t.equal(readFirstEnd(encode('')), null)
  })

  t.test('a commit notification is read as it was written', async (t) => {
    const wallet = { accountId: 'acc', balance: -1n, held: 2n, used: 3n, version: 4n }
    const sent = { batches: ['a', 'b'], wallets: [wallet, { ...wallet, reserved: 5n }] }
    t.strictSame(decodeCommitNotification(Buffer.from(encodeCommitNotification(sent))), sent)
    t.throws(() => decodeCommitNotification(Buffer.from('{}')))
  })
})

t.test('retries', async (t) => {
  t.test(
    'a failure is tried again after 50 ms, then twice as late, up to 2 s; an outage is logged once',
    async (t) => {
      const { time, log, logged, details, scheduler, pass } = startClock()
      const outage = new OutageLog(log, 'Work')
      const tries: number[] = []
      const done: string[] = []
      const work$ = defer(async () => {
        tries.push(time.now)
        time.promiseSettled()
        if (tries.length < 9) throw tries.length === 1 ? 'gone' : new Error('still gone')
        return 'done'
      })
      const running = work$.pipe(retryForever(outage, scheduler)).subscribe((result) => done.push(result))
      await pass(1)
      t.equal(outage.reason, 'gone')
      await pass(20_000)
      t.same(tries, [0, 50, 150, 350, 750, 1_550, 3_150, 5_150, 7_150])
      t.same(done, ['done'])
      t.same(logged, ['warn: Work fails; retrying', 'info: Work works again'])
      t.same(details[0], { error: 'gone', reason: 'gone' })
      t.equal(outage.reason, null)
      running.unsubscribe()
    },
  )

  t.test('a fault is reported, and the work goes on a second later', async (t) => {
    const { time, scheduler, pass } = startClock()
    const faults: unknown[] = []
    const tries: number[] = []
    const work$ = defer(async () => {
      tries.push(time.now)
      time.promiseSettled()
      throw tries.length
    })
    const running = work$.pipe(resubscribeOnFault((error) => faults.push(error), scheduler)).subscribe()
    await pass(2_500)
    t.same(tries, [0, 1_000, 2_000])
    t.same(faults, [1, 2, 3])
    running.unsubscribe()
  })
})

t.test('answers that wait until settlements are stored', async (t) => {
  t.test('each goes on when all before it is stored, in whatever order that happens', async (t) => {
    const mark = new StoredMark(startClock().scheduler)
    const done: string[] = []
    const wait = (upTo: number) =>
      mark.callWhenStored(upTo, (error) => done.push(`${upTo} ${error ?? 'stored'}`))
    wait(0)
    t.same(done, ['0 stored'], 'nothing is to be stored')
    const [first, second, third] = [
      makeBatch(2, makeCall('a'), makeCall('a')),
      makeBatch(3, makeCall('a')),
      makeBatch(4, makeCall('a')),
    ]
    for (const batch of [first, second, third]) mark.add(batch)
    t.equal(mark.unstored, 3)
    t.notOk(mark.isAwaited)
    for (const upTo of [0, 1, 2, 3, 4]) wait(upTo)
    t.ok(mark.isAwaited)
    mark.markStored(second)
    mark.markStored(second)
    t.equal(mark.unstored, 2)
    t.same(done.splice(0), ['0 stored', '0 stored'])
    mark.markStored(first)
    t.same(done.splice(0), ['1 stored', '2 stored', '3 stored'])
    mark.markStored(third)
    t.same(done, ['4 stored'])
    t.notOk(mark.isAwaited)
    wait(4)
    t.equal(done.length, 2)
  })

  t.test('for 30 s at most, looked at each second', async (t) => {
    const { scheduler, pass } = startClock()
    const mark = new StoredMark(scheduler)
    const done: (Error | undefined)[] = []
    mark.add(makeBatch(2, makeCall('a'), makeCall('a')))
    t.equal(mark.measureWaitMs(), 0)
    mark.callWhenStored(1, (error) => done.push(error))
    await pass(500)
    t.equal(mark.measureWaitMs(), 500)
    await pass(1_000)
    mark.callWhenStored(2, (error) => done.push(error))
    await pass(29_499)
    t.same(done, [])
    await pass(1)
    t.match(done, [/has not stored/])
    t.equal(done.length, 1)
    await pass(999)
    t.equal(done.length, 1)
    await pass(1)
    t.equal(done.length, 2)
    t.equal(mark.measureWaitMs(), 0)
  })
})

t.test('late batches are looked up', async (t) => {
  /** Looks up batches whose request ids are booked as `booked` says. */
  function startLookUp(more: { missedAt?: () => number } = {}) {
    const clock = startClock()
    const inFlight = new Map<string, Published>()
    const booked = new Set<string>()
    const found: string[] = []
    const state = { isAway: false, asked: 0, atOnce: 0, mostAtOnce: 0, answerMs: 0 }
    const running = lookUpLate({
      inFlight,
      missedAt: () => Number.NEGATIVE_INFINITY,
      database: {
        bookings: {
          async readBooked(requestIds, ids) {
            state.asked += 1
            state.mostAtOnce = Math.max(state.mostAtOnce, ++state.atOnce)
            await clock.pause(state.answerMs)
            state.atOnce -= 1
            if (state.isAway) throw new Error('away')
            found.push(`asked about ${[...ids].join()}`)
            return { requestIds: new Set(requestIds.filter((id) => booked.has(id))), wallets: [] }
          },
        },
      },
      onBooked: ({ id }) => {
        inFlight.delete(id)
        found.push(`${id} booked`)
      },
      onUnbooked: ({ batch }) => found.push(`${batch.id} unbooked`),
      log: clock.log,
      scheduler: clock.scheduler,
      ...more,
    }).subscribe()
    const add = (batch: JournalBatch, storedAt: number | null = clock.time.now): Published => {
      const published: Published = {
        ...{ batch, storedAt, refusedSince: null, sentAt: null },
        ...{ isOverdue: false, isUnreadable: false },
      }
      inFlight.set(batch.id, published)
      return published
    }
    return { ...clock, inFlight, booked, found, state, add, stop: () => running.unsubscribe() }
  }

  t.test('10 s after they were stored, each second', async (t) => {
    const { add, booked, found, pass, stop } = startLookUp()
    const [one, two] = [makeCall('acc-1'), makeCall('acc-2')]
    const unbooked = add(makeBatch(1, two))
    add(makeBatch(2, one))
    add(makeBatch(3, one), null)
    booked.add(one.request_id)
    await pass(9_999)
    t.same(found, [])
    await pass(1)
    t.same([...found].sort(), [
      'asked about acc-1',
      'asked about acc-2',
      'journal.1 unbooked',
      'journal.2 booked',
    ])
    t.match(unbooked, { storedAt: null, isOverdue: true })
    await pass(5_000)
    t.equal(found.length, 4, 'each once')
    stop()
  })

  t.test('after NATS was away a second later, where they were stored before', async (t) => {
    const { add, found, pass, stop } = startLookUp({ missedAt: () => 2_500 })
    await pass(2_500)
    add(makeBatch(1, makeCall('before')))
    await pass(1)
    add(makeBatch(2, makeCall('after')))
    await pass(1_000)
    t.same(found, [], 'half a second is too soon')
    await pass(500)
    t.same(found, ['asked about before', 'journal.1 unbooked'])
    stop()
    const exact = startLookUp({ missedAt: () => 2_000 })
    await exact.pass(2_000)
    exact.add(makeBatch(1, makeCall('acc')))
    await exact.pass(1_001)
    t.equal(exact.found.length, 2, 'to the millisecond')
    exact.stop()
  })

  t.test('at once where the clock was set back', async (t) => {
    const { add, found, pass, stop } = startLookUp()
    add(makeBatch(1, makeCall('acc')), 1_001)
    add(makeBatch(2, makeCall('other')), 1_000)
    await pass(1_000)
    t.same(found, ['asked about acc', 'journal.1 unbooked'])
    stop()
  })

  t.test('256 in a round, 8 at once, and no round begins before the last has ended', async (t) => {
    const { add, found, pass, state, stop } = startLookUp()
    for (let end = 1; end <= 300; end++) add(makeBatch(end, makeCall('acc')))
    state.answerMs = 100
    await pass(10_000 + 32 * 100)
    t.equal(state.mostAtOnce, 8)
    t.equal(state.asked, 256)
    await pass(2_000)
    t.equal(state.asked, 256, 'those behind them wait until these are gone')
    t.equal(found.filter((line) => line.endsWith('unbooked')).length, 256)
    stop()
  })

  t.test('while PostgreSQL is away a round ends early, and its batches stay', async (t) => {
    const { add, found, logged, pass, state, stop } = startLookUp()
    for (let end = 1; end <= 20; end++) add(makeBatch(end, makeCall('acc')))
    state.isAway = true
    await pass(10_000)
    t.equal(state.asked, 8)
    await pass(1_000)
    t.equal(state.asked, 16)
    t.same(logged, ['warn: Asking PostgreSQL for what is booked fails; retrying'])
    state.isAway = false
    await pass(1_000)
    t.equal(found.length, 40)
    t.equal(logged.at(-1), 'info: Asking PostgreSQL for what is booked works again')
    stop()
  })

  t.test('one that was confirmed meanwhile has no effect', async (t) => {
    const { add, found, inFlight, pass, state, stop } = startLookUp()
    for (let end = 1; end <= 10; end++) add(makeBatch(end, makeCall(`acc-${end}`)))
    state.answerMs = 10
    await pass(10_005)
    inFlight.clear()
    await pass(100)
    t.equal(state.asked, 8, 'and is not asked about')
    t.notOk(found.some((line) => line.endsWith('booked')))
    stop()
  })

  t.test('a file that cannot be read is tried again later, and holds up no other', async (t) => {
    const { add, details, found, logged, pass, stop } = startLookUp()
    let isBroken = true
    const call = makeCall('broken')
    const payload = () => {
      if (isBroken) throw new Error('input/output error')
      return encode(call)
    }
    for (let end = 1; end <= 300; end++) add({ ...makeBatch(end, call), payload })
    await pass(10_001)
    t.equal(logged.length, 256)
    await pass(1_000)
    t.equal(logged.length, 256 + 44)
    t.match(logged[0], 'Failed to read a batch back')
    t.match(details[0], { error: { message: 'input/output error' }, batch: 'journal.1' })
    add(makeBatch(301, makeCall('acc')), 0)
    await pass(1_000)
    t.same(found, ['asked about acc', 'journal.301 unbooked'])
    isBroken = false
    await pass(9_000)
    t.ok(found.length > 2, '10 s after the last try')
    t.equal(logged.length, 300, 'each is reported once')
    stop()
  })

  t.test('of files that cannot be read 256 are tried in a round', async (t) => {
    const { add, logged, pass, stop } = startLookUp()
    let tries = 0
    const payload = () => {
      tries += 1
      throw new Error('input/output error')
    }
    for (let end = 1; end <= 300; end++)
      Object.assign(add({ ...makeBatch(end, makeCall('acc')), payload }), { isUnreadable: true })
    await pass(10_001)
    t.equal(tries, 256)
    t.same(logged, [], 'which was said before')
    stop()
  })

  t.test('a damaged batch is stored again, whatever is booked of it', async (t) => {
    const { add, booked, details, found, logged, pass, stop } = startLookUp()
    const [one, two] = [makeCall('acc'), makeCall('acc')]
    for (const { request_id } of [one, two]) booked.add(request_id)
    add({ ...makeBatch(1, one, two), payload: () => encode(one) })
    add({ ...makeBatch(2, one, two), payload: () => encode(one, 'no settlement') })
    add({ ...makeBatch(3, one), count: 0, payload: () => encode('') })
    add(makeBatch(4, one, makeCall('acc')))
    add(makeBatch(5, one, two))
    await pass(10_000)
    t.same(found.filter((line) => !line.startsWith('asked')).sort(), [
      'journal.1 unbooked',
      'journal.2 booked',
      'journal.3 unbooked',
      'journal.4 unbooked',
      'journal.5 booked',
    ])
    t.same(logged, ['error: The journal is damaged where a batch is; stored what is left of it'])
    t.same(details, [{ batch: 'journal.1' }])
    stop()
  })
})

t.test('a queue whose rows are read together', async (t) => {
  interface Note {
    readonly id: string
  }

  /** A worker whose rows are those of `rows`, and a delivery of each message that says what happened to it. */
  function startWorker() {
    const clock = startClock()
    const rows = new Map<string, Note>()
    const reads: string[][] = []
    const worked: [held: Held<Note>, row: Note | null][] = []
    const told: string[] = []
    const state = { isAway: false, readMs: 0 }
    const worker = new BatchWorker<Note, Note>(
      { log: clock.log, now: () => clock.time.now, pause: clock.pause },
      {
        ...{ subject: 'note', title: 'Working on notes' },
        decode: (payload) => (payload.length === 0 ? null : { id: Buffer.from(payload).toString() }),
        async read(ids) {
          reads.push([...ids])
          if (state.readMs > 0) await clock.pause(state.readMs)
          if (state.isAway) throw new Error('away')
          return ids.flatMap((id) => rows.get(id) ?? [])
        },
        work: (held, row) => void worked.push([held, row]),
      },
    )
    const deliver = (id: string) =>
      worker.receive({
        messageId: `message ${id}`,
        data: Buffer.from(id),
        acknowledge: () => told.push(`${id} acknowledged`),
        keep: () => told.push(`${id} kept`),
        release: (delayMs) => told.push(`${id} released for ${delayMs}`),
      })
    return { ...clock, worker, rows, reads, worked, told, state, deliver }
  }

  t.test('messages that come within 5 ms, each row once, 500 at a time', async (t) => {
    const { rows, reads, worked, worker, deliver, pass, told } = startWorker()
    rows.set('a', { id: 'a' })
    for (const id of ['a', 'b', 'a']) deliver(id)
    t.equal(worker.held, 3)
    await pass(4)
    t.same(reads, [])
    await pass(1)
    t.same(reads, [['a', 'b']])
    t.same(
      worked.map(([{ message }, row]) => [message.id, row]),
      [
        ['a', { id: 'a' }],
        ['b', null],
        ['a', { id: 'a' }],
      ],
    )
    worker.keep()
    t.equal(told.splice(0).length, 3)
    worker.finish(worked[0]![0])
    worker.release(worked[1]![0], 70)
    worker.release(worked[1]![0], 70)
    t.same(told, ['a acknowledged', 'b released for 70'])
    t.equal(worker.held, 1)
    for (let at = 0; at < 501; at++) deliver(`n${at}`)
    await pass(5)
    t.same(
      reads.slice(1).map(({ length }) => length),
      [500, 1],
    )
  })

  t.test('work that no message names has none to acknowledge', async (t) => {
    const { worked, worker, pass, told } = startWorker()
    worker.take({ id: 'a' })
    t.equal(worker.held, 0)
    await pass(5)
    worker.finish(worked[0]![0])
    worker.release(worked[0]![0], 1)
    t.same([worked.length, told.length], [1, 0])
  })

  t.test('a malformed message is dropped', async (t) => {
    const { deliver, details, logged, pass, reads, told } = startWorker()
    deliver('')
    await pass(5)
    t.same([told, reads], [[' acknowledged'], []])
    t.same(logged, ['error: Dropped malformed message about a note'])
    t.same(details, [{ message_id: 'message ' }])
  })

  t.test('while PostgreSQL is away messages come back 2 s later', async (t) => {
    const { deliver, pass, state, told, worked, worker } = startWorker()
    state.isAway = true
    for (const id of ['a', 'b']) deliver(id)
    await pass(5)
    t.same(told, ['a released for 2000', 'b released for 2000'])
    t.equal(worker.outage.reason, 'away')
    t.same([worker.held, worked.length], [0, 0])
    state.isAway = false
    deliver('a')
    await pass(5)
    t.equal(worked.length, 1, 'it goes on')
  })

  t.test('a worker that stops gives everything back, and waits for work within a bound', async (t) => {
    const { deliver, pass, state, told, worked, worker } = startWorker()
    deliver('working')
    await pass(5)
    state.readMs = 100
    deliver('reading')
    await pass(5)
    deliver('waiting')
    let isBusy = true
    let hasStopped = false
    void worker
      .stop(1_000, () => isBusy)
      .then(() => {
        hasStopped = true
      })
    t.ok(worker.isStopped)
    t.same(told.splice(0), ['waiting released for 0'])
    deliver('late')
    worker.take({ id: 'found' })
    t.same(told.splice(0), ['late released for 0'])
    await pass(200)
    t.same(told.splice(0), ['reading released for 0'])
    t.equal(worked.length, 1)
    t.notOk(hasStopped)
    isBusy = false
    await pass(50)
    t.ok(hasStopped)
    t.same(told, ['working released for 0'])
    t.equal(worker.held, 0)
  })

  t.test('the bound is kept where work does not end', async (t) => {
    const { pass, worker } = startWorker()
    let hasStopped = false
    void worker
      .stop(1_000, () => true)
      .then(() => {
        hasStopped = true
      })
    await pass(999)
    t.notOk(hasStopped)
    await pass(1)
    t.ok(hasStopped)
  })
})

t.test('a gateway publishes its journal', async (t) => {
  /** A journal of batches that the test has put into it. */
  function startPublisher({ isAwaited = false } = {}) {
    const clock = startClock()
    const untaken: JournalBatch[] = []
    const told: string[] = []
    const published: string[] = []
    const notified: CommittedWallets[] = []
    const state = { unbooked: 0, settledTo: 0, isRefusing: false, isBroken: false, takesMs: 0 }
    let settled = () => {}
    let hear: (payload: Uint8Array) => void = () => {}
    let comeBack = () => {}
    const journal = {
      id: 'journal',
      get untaken() {
        return untaken.length
      },
      get settledTo() {
        return state.settledTo
      },
      depth: () => ({ settlementsUnbooked: state.unbooked }),
      onSettled: (work: () => void) => {
        settled = work
      },
      take() {
        if (state.isBroken) throw new Error('input/output error')
        return untaken.shift() ?? null
      },
      confirm({ id, count }: JournalBatch) {
        state.unbooked -= count
        told.push(`${id} confirmed`)
      },
      release: ({ id }: JournalBatch) => void told.push(`${id} released`),
    } as unknown as Journal
    const publisher = new SettlementPublisher({
      journal,
      nats: {
        publish(subject, id, _payload, done) {
          published.push(`${clock.time.now} ${subject} ${id}`)
          const answer = () => done(state.isRefusing ? new Error('no leader') : null)
          clock.time.after(state.takesMs, answer)
        },
        listen(_subject, heard, missed) {
          hear = heard
          comeBack = missed
          return () => void told.push('deaf')
        },
        sendDirectly: (id) => void told.push(`${clock.time.now} ${id} sent directly`),
      },
      database: { bookings: { readBooked: async () => ({ requestIds: new Set(), wallets: [] }) } },
      onBooked: (wallets) => void notified.push(wallets),
      onNotificationsMissed: () => void told.push('missed'),
      isAwaited: () => isAwaited,
      log: clock.log,
      scheduler: clock.scheduler,
    })
    const put = (batch: JournalBatch) => {
      state.settledTo = batch.end
      state.unbooked += batch.count
      untaken.push(batch)
      settled()
    }
    const settle = (...calls: Settlement[]) => put(makeBatch(state.settledTo + calls.length, ...calls))
    const book = (...batches: string[]) =>
      hear(Buffer.from(encodeCommitNotification({ batches, wallets: [] })))
    return {
      ...{ ...clock, publisher, put, settle, book, told, published, notified, state },
      hear: (payload: Uint8Array) => hear(payload),
      comeBack: () => comeBack(),
    }
  }
  const SUBJECT = 'tollgate.settlements.journal'

  t.test('settlements of 150 ms share a message; where answers wait, those of 2 ms', async (t) => {
    for (const [isAwaited, lingerMs] of [
      [false, 150],
      [true, 2],
    ] as const) {
      const { settle, pass, published, publisher, time, told } = startPublisher({ isAwaited })
      await pass(1_000)
      const at = time.now
      settle(makeCall('acc'))
      await pass(lingerMs - 1)
      t.same(published, [])
      await pass(1)
      t.match(published, [new RegExp(`^${at + lingerMs} .*journal.1$`)])
      t.equal(publisher.inFlight, 1)
      t.same(told, isAwaited ? ['journal.1 released'] : [], 'its memory is freed where there may be many')
      publisher.stop()
    }
  })

  t.test('a reader of the log waits for neither', async (t) => {
    const { book, settle, pass, published, publisher, state } = startPublisher()
    const done: unknown[] = []
    publisher.callWhenBooked(() => done.push('nothing was unbooked'))
    t.equal(done.length, 1)
    settle(makeCall('acc'))
    publisher.callWhenBooked(() => done.push('booked'))
    await pass(0)
    t.equal(published.length, 1)
    settle(makeCall('acc'))
    await pass(2)
    t.equal(published.length, 2, '2 ms, while a reader waits')
    book('journal.1')
    t.same(done.slice(1), ['booked'])
    book('journal.2')
    t.same([state.unbooked, publisher.inFlight], [0, 0])
    publisher.stop()
  })

  t.test('a waiting answer learns when its settlement is stored', async (t) => {
    const { settle, pass, publisher, state } = startPublisher({ isAwaited: true })
    const done: string[] = []
    state.takesMs = 40
    settle(makeCall('acc'))
    publisher.callWhenStored(() => done.push('stored'))
    await pass(41)
    t.same(done, [])
    t.equal(publisher.measureWaitMs(), 41)
    await pass(1)
    t.same(done, ['stored'])
    publisher.stop()
  })

  t.test('a notification confirms each batch of its journal once, with the costs', async (t) => {
    const { book, details, hear, settle, pass, publisher, notified, logged, told } = startPublisher()
    settle(makeCall('acc', '3'), makeCall('other', '1'))
    settle(makeCall('acc', '4'))
    await pass(150)
    t.equal(publisher.inFlight, 2)
    book('journal.2', 'journal.3', 'journal.2', 'elsewhere.7')
    t.same(told, ['journal.2 confirmed', 'journal.3 confirmed'])
    t.same(
      [...notified[0]!.costs],
      [
        ['acc', 7n],
        ['other', 1n],
      ],
    )
    book('elsewhere.8')
    t.same([...notified[1]!.costs], [])
    hear(Buffer.from('{'))
    t.same(logged, ['error: Dropped malformed commit notification'])
    t.match(details, [{ error: SyntaxError }])
    publisher.stop()
    t.equal(told.at(-1), 'deaf')
  })

  t.test('32 batches are in flight at most; where answers wait, 32 that are not stored', async (t) => {
    for (const [isAwaited, isRefusing, most] of [
      [false, false, 32],
      [true, false, 40],
      [true, true, 32],
    ] as const) {
      const { settle, pass, publisher, state } = startPublisher({ isAwaited })
      state.isRefusing = isRefusing
      for (let call = 0; call < 40; call++) settle(makeCall('acc'))
      await pass(500)
      t.equal(publisher.inFlight, most)
      publisher.stop()
    }
  })

  t.test('while answers wait, messages get larger as more batches are unbooked', async (t) => {
    const { settle, pass, publisher, published, state } = startPublisher({ isAwaited: true })
    for (const [unbooked, lingerMs] of [
      [1, 2],
      [1_280, 5],
    ] as const) {
      while (state.settledTo < unbooked) settle(makeCall('acc'))
      await pass(1_000)
      const { length } = published
      settle(makeCall('acc'))
      await pass(lingerMs - 1)
      t.equal(published.length, length)
      await pass(1)
      t.equal(published.length, length + 1)
    }
    publisher.stop()
  })

  t.test('there is room again when one is booked', async (t) => {
    const { book, settle, pass, publisher, published } = startPublisher()
    for (let call = 0; call < 33; call++) settle(makeCall('acc'))
    await pass(150)
    t.equal(published.length, 32)
    book('journal.1')
    await pass(150)
    t.equal(published.length, 33)
    publisher.stop()
  })

  t.test('what JetStream refuses is sent directly after 15 s, and again after each 15 s', async (t) => {
    const { book, settle, pass, published, publisher, state, told } = startPublisher()
    await pass(60_000)
    Object.assign(state, { isRefusing: true, takesMs: 500 })
    settle(makeCall('acc'))
    await pass(40_000)
    t.same(told, ['76800 journal.1 sent directly', '91800 journal.1 sent directly'], 'each on the next try')
    book('journal.1')
    const { length } = published
    await pass(60_000)
    t.equal(published.length, length, 'what is booked is stored no more')
    t.equal(told.filter((line) => line.endsWith('directly')).length, 2, 'and never once it is booked')
    publisher.stop()
  })

  t.test(
    'once JetStream has taken nothing for 15 s, each further batch is sent directly at once',
    async (t) => {
      const { settle, pass, publisher, state, told } = startPublisher()
      await pass(1_000)
      state.isRefusing = true
      settle(makeCall('acc'))
      await pass(15_000)
      settle(makeCall('acc'))
      await pass(300)
      t.same(told, ['16150 journal.2 sent directly', '16300 journal.1 sent directly'])
      publisher.stop()
    },
  )

  t.test('a clock that is set back does not stop batches from being sent directly', async (t) => {
    const { settle, pass, publisher, setBack, state, told } = startPublisher()
    state.isRefusing = true
    settle(makeCall('acc'))
    await pass(16_000)
    t.equal(told.length, 1)
    setBack(3_600_000)
    await pass(18_000)
    t.equal(told.length, 2)
    publisher.stop()
  })

  t.test('what is stored and not booked in time is stored again, and sent directly', async (t) => {
    const { settle, pass, publisher, published, told } = startPublisher()
    settle(makeCall('acc'))
    await pass(10_000)
    t.equal(published.length, 1)
    await pass(2_000)
    t.equal(published.length, 2)
    t.match(told, [/journal.1 sent directly$/])
    publisher.stop()
  })

  t.test('a stored batch that cannot be read back is reported', async (t) => {
    const { pass, publisher, put, logged } = startPublisher()
    let isBroken = false
    const call = makeCall('acc')
    const payload = () => {
      if (isBroken) throw new Error('input/output error')
      return encode(call)
    }
    put({ ...makeBatch(1, call), payload })
    await pass(500)
    isBroken = true
    await pass(30_000)
    t.match(logged, [/Failed to read a batch back/])
    publisher.stop()
  })

  t.test('a message carries the subject of its journal', async (t) => {
    const { settle, pass, published, publisher } = startPublisher()
    settle(makeCall('acc'))
    await pass(150)
    t.same(published, [`150 ${SUBJECT} journal.1`])
    publisher.stop()
  })

  t.test('a journal that cannot be read back is tried again a second later', async (t) => {
    const { settle, pass, published, publisher, state, logged, details } = startPublisher()
    state.isBroken = true
    settle(makeCall('acc'))
    await pass(200)
    t.match(logged, [/Failed to read the journal back/])
    t.match(details, [{ error: { message: 'input/output error' } }])
    state.isBroken = false
    await pass(949)
    t.equal(published.length, 0)
    await pass(151)
    t.equal(published.length, 1)
    publisher.stop()
  })

  t.test('the oldest unbooked call, while its file can be read', async (t) => {
    const { book, put, settle, pass, publisher } = startPublisher()
    t.equal(publisher.readOldestUnbookedAt(), null)
    settle(makeCall('acc', '1', { created_at: 77 }))
    settle(makeCall('acc', '1', { created_at: 99 }))
    await pass(150)
    t.equal(publisher.readOldestUnbookedAt(), 77)
    book('journal.1')
    t.equal(publisher.readOldestUnbookedAt(), 99)
    book('journal.2')
    let isBroken = false
    const payload = () => {
      if (isBroken) throw new Error('input/output error')
      return encode('')
    }
    put({ ...makeBatch(3, makeCall('acc')), payload })
    await pass(150)
    isBroken = true
    t.equal(publisher.readOldestUnbookedAt(), null)
    publisher.stop()
    t.equal(publisher.inFlight, 0)
  })

  t.test('a drain ends when nothing is unbooked, or at its bound', async (t) => {
    const { book, settle, pass, publisher } = startPublisher()
    t.equal(await publisher.drain(null), true)
    settle(makeCall('acc'))
    const ends: boolean[] = []
    void publisher.drain(null).then((end) => ends.push(end))
    void publisher.drain(500).then((end) => ends.push(end))
    await pass(499)
    t.same(ends, [])
    await pass(1)
    t.same(ends, [false])
    void publisher.drain(500).then((end) => ends.push(end))
    book('journal.1')
    await pass(1)
    t.same(ends, [false, true, true])
    publisher.stop()
  })

  t.test('a connection that was lost is told of', async (t) => {
    const { comeBack, pass, publisher, published, settle, told } = startPublisher()
    settle(makeCall('acc'))
    await pass(500)
    comeBack()
    t.same(told, ['missed'])
    await pass(2_500)
    t.equal(published.length, 2, 'and what was stored before is looked up a second later')
    publisher.stop()
  })
})

t.test('a settler books messages', async (t) => {
  function startSettler() {
    const clock = startClock()
    const told: string[] = []
    const books: number[][] = []
    const state = {
      ...{ isAway: false, isFaulty: false, bookMs: 0, refused: [] as string[] },
      unbooked: new Set<string>(),
    }
    const read: string[][] = []
    let [deliver, sendDirectly]: ((delivery: Delivery) => void)[] = []
    const settler = new Settler({
      nats: {
        consume(handle) {
          deliver = handle
          return () => void told.push('consumes no more')
        },
        receiveDirectly(handle) {
          sendDirectly = handle
          return () => void told.push('receives no more')
        },
        announce(_subject, payload) {
          if (state.isFaulty) throw new Error('unforeseen')
          told.push(`announced ${payload}`)
        },
      },
      database: {
        bookings: {
          async book(settlements) {
            books.push([clock.time.now, settlements.length])
            if (state.bookMs > 0) await clock.pause(state.bookMs)
            clock.time.promiseSettled()
            if (state.isAway) throw new Error('away')
            const booked = settlements.map(({ request_id }) => request_id)
            return {
              wallets: [{ accountId: 'acc', balance: 1n, held: 0n, used: 2n, version: 3n }],
              booked: booked.filter((id) => !state.unbooked.has(id)),
              refused: state.refused,
            }
          },
        },
        wallets: {
          async read(ids) {
            read.push([...ids])
            return [{ accountId: 'again', balance: 5n, held: 0n, used: 6n, version: 7n }]
          },
        },
      },
      onBookedRows: () => void told.push('rows'),
      onRefused: (ids) => void told.push(`refused ${ids.join()}`),
      onMalformed: ({ line }) => void told.push(`malformed ${line}`),
      log: clock.log,
      scheduler: clock.scheduler,
    })
    const makeDelivery = (messageId: string | null, ...lines: (Settlement | string)[]): Delivery => ({
      ...{ messageId, data: encode(...lines) },
      acknowledge: () => void told.push(`${messageId} acknowledged`),
      keep: () => void told.push(`${messageId} kept`),
      release: () => void told.push(`${messageId} released`),
    })
    return {
      ...{ ...clock, settler, told, books, state, read },
      deliver: (...of: Parameters<typeof makeDelivery>) => deliver!(makeDelivery(...of)),
      sendDirectly: (...of: Parameters<typeof makeDelivery>) => sendDirectly!(makeDelivery(...of)),
    }
  }
  const WALLET = '{"account_id":"acc","balance":"1","held":"0","used":"2","version":"3"}'

  t.test('those of 10 ms in one transaction: announced, acknowledged, told', async (t) => {
    const { settler, deliver, pass, told, books } = startSettler()
    deliver('one', makeCall('acc'))
    await pass(9)
    deliver(null, makeCall('acc'), makeCall('acc'))
    t.equal(settler.waiting, 2)
    t.same(books, [])
    await pass(1)
    t.same(books, [[10, 3]])
    t.same(told, [
      `announced {"batches":["one"],"wallets":[${WALLET}]}`,
      'one acknowledged',
      'null acknowledged',
      'rows',
    ])
    t.equal(settler.waiting, 0)
    void settler.stop(0)
  })

  t.test('whole messages, up to 1,000 settlements; a larger one in parts', async (t) => {
    const { settler, deliver, pass, books } = startSettler()
    const many = (count: number) => Array.from({ length: count }, () => makeCall('acc'))
    deliver('one', ...many(600))
    deliver('two', ...many(400))
    deliver('three', ...many(1))
    deliver('four', ...many(1_001))
    await pass(20)
    t.same(
      books.map(([, count]) => count),
      [1_000, 1, 1_000, 1],
    )
    void settler.stop(0)
  })

  t.test('while PostgreSQL is away they are kept, and nobody else gets them', async (t) => {
    const { settler, deliver, pass, told, books, state, logged } = startSettler()
    state.isAway = true
    deliver('one', makeCall('acc'))
    await pass(1_999)
    t.same(told, [])
    t.equal(settler.trouble, 'away')
    await pass(1)
    t.same(told.splice(0), ['one kept'])
    t.same(
      books.map(([at]) => at),
      [10, 60, 160, 360, 760, 1_560],
    )
    state.isAway = false
    await pass(2_000)
    t.match(told, [/announced/, 'one acknowledged', 'rows'])
    t.equal(settler.trouble, null)
    t.same(logged, ['warn: Booking settlements fails; retrying', 'info: Booking settlements works again'])
    void settler.stop(0)
  })

  t.test('a line that is no settlement is kept once, however often booking fails', async (t) => {
    const { settler, deliver, pass, told, state } = startSettler()
    state.isAway = true
    deliver('one', 'no settlement', makeCall('acc'))
    await pass(500)
    state.isAway = false
    await pass(1_000)
    t.equal(told.filter((line) => line === 'malformed no settlement').length, 1)
    t.ok(told.includes('one acknowledged'))
    void settler.stop(0)
  })

  t.test('what PostgreSQL refuses for good is reported', async (t) => {
    const { settler, deliver, details, pass, told, state, logged } = startSettler()
    state.refused = ['req_1', 'req_2']
    deliver('one', makeCall('acc'))
    await pass(10)
    t.equal(told[0], 'refused req_1,req_2')
    t.match(logged, [/PostgreSQL refused settlements/])
    t.same(details, [{ request_ids: ['req_1', 'req_2'] }])
    void settler.stop(0)
  })

  t.test('after an unexpected fault it releases everything and resumes a second later', async (t) => {
    const { settler, deliver, details, pass, told, state, logged } = startSettler()
    state.isFaulty = true
    deliver('one', makeCall('acc'))
    await pass(10)
    t.same(told.splice(0), ['one released', 'consumes no more', 'receives no more'])
    t.equal(settler.waiting, 0)
    t.match(logged, [/Unexpected fault while settling/])
    t.match(details, [{ error: { message: 'unforeseen' } }])
    state.isFaulty = false
    await pass(1_000)
    deliver('one', makeCall('acc'))
    await pass(10)
    t.ok(told.includes('one acknowledged'))
    void settler.stop(0)
  })

  t.test('of what was booked before, the totals are read and announced again', async (t) => {
    const { settler, deliver, pass, told, state, read } = startSettler()
    const [paid, free] = [makeCall('acc', '5'), makeCall('other', '0')]
    for (const { request_id } of [paid, free]) state.unbooked.add(request_id)
    deliver('one', paid, free)
    await pass(10)
    t.same(read, [['acc', paid.key_id]])
    t.match(told[0], '"account_id":"again"')
    deliver('two', free)
    await pass(10)
    t.equal(read.length, 1, 'what cost nothing changed no totals')
    void settler.stop(0)
  })

  t.test('a batch that is sent directly is taken once, while there are fewer than 32', async (t) => {
    const { settler, sendDirectly, pass, state } = startSettler()
    state.isAway = true
    for (const id of ['b0', 'b0', 'b1']) sendDirectly(id, makeCall('acc'))
    t.equal(settler.waiting, 2)
    for (let at = 2; at < 40; at++) sendDirectly(`b${at}`, makeCall('acc'))
    t.equal(settler.waiting, 32)
    state.isAway = false
    await pass(100)
    t.equal(settler.waiting, 0)
    void settler.stop(0)
  })

  t.test('a settler that stops books what it has, and gives the rest back at its bound', async (t) => {
    for (const [bookMs, last] of [
      [50, 'acknowledged'],
      [5_000, 'released'],
    ] as const) {
      const { settler, deliver, pass, told, state } = startSettler()
      state.bookMs = bookMs
      deliver('one', makeCall('acc'))
      await pass(15)
      let hasStopped = false
      void settler.stop(1_000).then(() => {
        hasStopped = true
      })
      t.ok(told.includes('consumes no more') && told.includes('receives no more'))
      await pass(999)
      t.equal(hasStopped, bookMs === 50)
      await pass(1)
      t.ok(hasStopped)
      t.ok(told.includes(`one ${last}`))
      t.equal(settler.waiting, 0)
    }
  })
})
