/** The limiter over a real NATS: limits hold over processes. */
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { LIMITS_SUBJECT } from '../../../schemas/accounts/limits.ts'
import { ulid } from '../../../src/core/keys/ids.ts'
import type { Decision, Limits, SubjectLimits } from '../../../src/core/limits/limiter-state.ts'
import { admits, type Permit } from '../../../src/limits/limited-request.ts'
import { Limiter } from '../../../src/limits/limits.ts'
import { type MailboxHandlers, openMailbox } from '../../../src/nats/mailbox.ts'
import { Random } from '../../simulation/random.ts'
import { startEngines } from '../../support/engines.ts'
import { until } from '../../support/eventually.ts'

t.test('limits hold across processes', async (t) => {
  // Each limiter here is what one gateway process has; they meet over a real NATS alone.
  // See docs/failure-modes.md, "Money", row 26 and "Streams", row 42.
  const engines = await startEngines(t, { only: ['nats'] })
  const silent = { info() {}, warn() {}, error() {}, debug() {} }
  const perMinute = (requestsPerMinute: number): Limits => ({ requestsPerMinute, concurrency: null })
  const MANY: Limits = { requestsPerMinute: 500, concurrency: 20 }
  const atOnce = (concurrency: number): Limits => ({ requestsPerMinute: null, concurrency })

  interface Process extends Pick<Limiter, 'take' | 'countInFlight' | 'waitUntilJoined' | 'close'> {
    /** Ends as a killed process does: silently. */
    kill(): Promise<void>
  }

  let processes = 0

  /** A service of its own for each test: its processes hear nobody else's. */
  function serviceOf(t: Test) {
    const group = `${LIMITS_SUBJECT}.test${processes++}`
    return async (): Promise<Process> => {
      // Identifiers rise from one to the next, as those of processes do.
      const self = ulid(processes++)
      const dead: MailboxHandlers = {
        onMessage() {},
        onUndelivered() {},
        onConnected() {},
        onDisconnected() {},
      }
      let handlers = dead
      let closeMailbox = async () => {}
      const limiter = new Limiter({
        self,
        log: silent,
        now: () => performance.now(),
        openMailbox(given) {
          handlers = given
          const mailbox = openMailbox(
            { url: engines.natsUrl, name: self, log: silent, group, address: self },
            {
              onMessage: (payload) => handlers.onMessage(payload),
              onUndelivered: (to) => handlers.onUndelivered(to),
              onConnected: () => handlers.onConnected(),
              onDisconnected: () => handlers.onDisconnected(),
            },
          )
          closeMailbox = () => mailbox.close()
          return mailbox
        },
      })
      t.teardown(() => limiter.close())
      await limiter.waitUntilJoined()
      const kill = async () => {
        handlers = dead
        await closeMailbox()
      }
      return {
        kill,
        take: (subjects, told) => limiter.take(subjects, told),
        countInFlight: (subject) => limiter.countInFlight(subject),
        waitUntilJoined: () => limiter.waitUntilJoined(),
        close: () => limiter.close(),
      }
    }
  }

  interface Answer {
    /** By the first subject. */
    readonly decision: Decision
    readonly decisions: readonly Decision[]
    readonly permit: Permit
  }

  const askAll = (by: Process, subjects: readonly SubjectLimits[]): Promise<Answer> =>
    new Promise((resolve) => {
      const permit = by.take(subjects, (decisions) => {
        // Where this process decides, the permit is there a moment later.
        queueMicrotask(() => resolve({ decision: decisions[0]!, decisions, permit }))
      })
    })

  const ask = (by: Process, subject: string, limits: Limits): Promise<Answer> =>
    askAll(by, [{ subject, limits }])

  const askMany = (by: readonly Process[], times: number, subject: string, limits: Limits) =>
    Promise.all(Array.from({ length: times }, (_, at) => ask(by[at % by.length]!, subject, limits)))

  const admitted = (answers: readonly Answer[]): number =>
    answers.filter(({ decisions }) => admits(decisions)).length

  t.test('one process alone decides at once', async (t) => {
    const only = await serviceOf(t)()
    let told: Decision | null = null
    const limits = { requestsPerMinute: 5, concurrency: 2 }
    const permit = only.take([{ subject: 'acc', limits }], ([decision]) => {
      told = decision!
    })
    t.match(told, { refusedBy: null, remainingRequests: 4, remainingConcurrency: 1 })
    t.equal(only.countInFlight('acc'), 1)
    permit.close()
    permit.close()
    t.equal(only.countInFlight('acc'), 0)
  })

  t.test('of 40 requests to two processes at once exactly 10 are admitted', async (t) => {
    const start = serviceOf(t)
    const both = await Promise.all([start(), start()])
    const requests = await askMany(both, 40, 'rpm', perMinute(10))
    t.equal(admitted(requests), 10)
    t.ok(requests.every(({ decision }) => decision.resetMs > 0 && decision.resetMs <= 60_000))
    const slots = await askMany(both, 40, 'slots', atOnce(10))
    t.equal(admitted(slots), 10)
    t.equal(admitted(await askMany(both, 40, 'both', { requestsPerMinute: 10, concurrency: 3 })), 3)
    for (const { permit } of slots) permit.close()
    t.equal(admitted(await askMany(both, 40, 'slots', atOnce(10))), 10, 'all slots are back')
  })

  t.test('of a request with two subjects each counts exactly what both admit', async (t) => {
    const start = serviceOf(t)
    const all = [await start(), await start(), await start()]
    const askBoth = (times: number, key: Limits, account: Limits, name: string) =>
      Promise.all(
        Array.from({ length: times }, (_, at) =>
          askAll(all[at % 3]!, [
            { subject: `key ${name}`, limits: key },
            { subject: `account ${name}`, limits: account },
          ]),
        ),
      )
    const byKey = await askBoth(60, perMinute(10), perMinute(40), 'a')
    t.equal(admitted(byKey), 10)
    t.equal(admitted(await askMany(all, 60, 'account a', perMinute(40))), 30, 'refused ones took no place')
    const byAccount = await askBoth(60, perMinute(40), perMinute(10), 'b')
    t.equal(admitted(byAccount), 10)
    t.equal(admitted(await askMany(all, 60, 'key b', perMinute(40))), 30)
    const slots = await askBoth(60, atOnce(5), { requestsPerMinute: 20, concurrency: 8 }, 'c')
    t.equal(admitted(slots), 5)
    for (const { permit } of slots) permit.close()
    const again = await askBoth(60, atOnce(8), { requestsPerMinute: 20, concurrency: 3 }, 'c')
    t.equal(admitted(again), 3, 'all slots are back, of both')
    for (const { permit } of again) permit.close()
    t.equal(
      admitted(await askBoth(60, atOnce(60), perMinute(20), 'c')),
      12,
      'and 8 places of the minute are taken',
    )
  })

  t.test('one request after another is never told that the last is still under way', async (t) => {
    const start = serviceOf(t)
    const all = [await start(), await start(), await start()]
    let refused = 0
    for (let at = 0; at < 300; at++) {
      const { decision, permit } = await ask(all[at % 3]!, 'acc', atOnce(1))
      if (decision.refusedBy !== null) refused++
      permit.close()
    }
    t.equal(refused, 0)
  })

  t.test('a process that comes later finds the minute as it is', async (t) => {
    const start = serviceOf(t)
    const first = await start()
    t.equal(admitted(await askMany([first], 7, 'acc', perMinute(10))), 7)
    const later = await start()
    t.equal(admitted(await askMany([later], 7, 'acc', perMinute(10))), 3)
  })

  t.test('the leader is killed: its slots are free, the minute goes on, nobody waits', async (t) => {
    const start = serviceOf(t)
    const leader = await start()
    const [one, two] = [await start(), await start()] as const
    await askMany([leader], 3, 'slots', atOnce(4))
    await askMany([leader, one, two], 9, 'rpm', perMinute(12))
    t.match((await ask(one, 'slots', atOnce(4))).decision, { refusedBy: null })
    t.match((await ask(two, 'slots', atOnce(4))).decision, { refusedBy: 'concurrency' })
    // What a leader admitted for itself goes out within a second of its own time.
    await sleep(2_500)
    await leader.kill()
    const requests = await askMany([one, two], 30, 'rpm', perMinute(12))
    t.equal(admitted(requests), 3)
    t.equal(admitted(await askMany([two, one], 30, 'slots', atOnce(4))), 3)
    t.equal(admitted(await askMany([await start()], 5, 'rpm', perMinute(12))), 0)
  })

  t.test('a process that ends in order releases all at once', async (t) => {
    const start = serviceOf(t)
    const [leader, other] = [await start(), await start()] as const
    await askMany([leader], 2, 'acc', atOnce(2))
    await leader.close()
    t.equal(admitted(await askMany([other], 3, 'acc', atOnce(2))), 2)
  })

  t.test('after 1,000 requests that end at any moment nothing is in flight', async (t) => {
    const start = serviceOf(t)
    const both = [await start(), await start()] as const
    const random = new Random(42)
    const permits: Permit[] = []
    for (let at = 0; at < 1_000; at++) {
      const permit = both[at % 2]!.take([{ subject: `acc${at % 7}`, limits: MANY }], () => {})
      if (random.chance(0.3)) permit.close()
      else permits.push(permit)
      while (permits.length > 0 && random.chance(0.4))
        permits.splice(random.int(0, permits.length - 1), 1)[0]!.close()
      if (random.chance(0.1)) await new Promise(setImmediate)
    }
    for (const permit of permits) permit.close()
    const left = () =>
      both.flatMap((by) => Array.from({ length: 7 }, (_, at) => by.countInFlight(`acc${at}`)))
    await until('nothing is in flight anywhere', () => left().every((n) => n === 0))
    const again = await askMany(both, 40, 'acc0', MANY)
    t.equal(admitted(again), 20)
  })

  t.test('NATS goes: each decides by itself; it comes back: they decide together', async (t) => {
    const start = serviceOf(t)
    const both = [await start(), await start()] as const
    await askMany(both, 6, 'slots', atOnce(8))
    await engines.stopEngine('nats')
    t.equal(admitted(await askMany([both[0]], 20, 'alone', perMinute(5))), 5)
    t.equal(admitted(await askMany([both[1]], 20, 'alone', perMinute(5))), 5)
    t.ok(admitted(await askMany([both[1]], 1, 'slots', atOnce(8))) === 1)
    await engines.startEngine('nats')
    await until('they have found each other', async () => {
      const found = await Promise.all(both.map((by) => ask(by, 'probe', perMinute(1_000))))
      const remaining = found.map(({ decision }) => decision.remainingRequests)
      return Math.abs(remaining[0]! - remaining[1]!) === 1
    })
    t.equal(admitted(await askMany(both, 20, 'alone', perMinute(11))), 1, 'what each admitted alone is known')
    t.equal(admitted(await askMany(both, 20, 'slots', atOnce(8))), 1, 'and so is what each holds')
  })
})
