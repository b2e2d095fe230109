/**
 * Limits over processes in virtual time: who leads, and what becomes of requests while processes come, go, are stopped or
 * are not heard. The limiters are the real ones. `limits.test.ts` has them over a real NATS.
 */
import t, { type Test } from 'tap'
import {
  type LimitAsks,
  type LimitMessage,
  type LimitReport,
  limitMessage,
  MAX_LIMIT_ROWS,
} from '../../../schemas/accounts/limits.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import {
  type Decision,
  LimiterState,
  type Limits,
  type SubjectLimits,
} from '../../../src/core/limits/limiter-state.ts'
import { Arbiter } from '../../../src/limits/arbiter.ts'
import { ArbiterClient } from '../../../src/limits/client.ts'
import { decodeMessage, ReportAssembler, splitReport } from '../../../src/limits/codec.ts'
import { AdmissionCounter } from '../../../src/limits/counter.ts'
import { LimitedRequest } from '../../../src/limits/limited-request.ts'
import { Limiter } from '../../../src/limits/limits.ts'
import type { MailboxHandlers } from '../../../src/nats/mailbox.ts'
import { VirtualTime } from '../../simulation/virtual-time.ts'

const LATENCY_MS = 1
/** From a request of a process that follows to its decision: to the leader and back. */
const ROUND_TRIP_MS = 2 * LATENCY_MS

const perMinute = (requestsPerMinute: number): Limits => ({ requestsPerMinute, concurrency: null })
const atOnce = (concurrency: number): Limits => ({ requestsPerMinute: null, concurrency })

interface Asked {
  /** Null until it is decided. */
  decisions: readonly Decision[] | null
  close(): void
}

const writeReport = (from: string, leader: string | null, more: Partial<LimitReport> = {}): LimitReport => ({
  ...{
    type: 'report',
    from,
    leader,
    calls: false,
    leaves: false,
    gone: null,
    heard: 0,
    held: [],
    admitted: [],
  },
  ...{ more: false, ...more },
})

/** Returns whether it was admitted; null while it waits. */
const isAdmitted = ({ decisions }: Asked): boolean | null =>
  decisions === null ? null : decisions.every(({ refusedBy }) => refusedBy === null)

class Process {
  readonly limiter: Limiter
  readonly name: string
  readonly logged: string[] = []
  readonly noted: object[] = []
  /** Messages that it has sent. */
  sent = 0
  /** What happens to a message from this process, or to it. */
  isMute = false
  isDeaf = false
  /** Its clock is ahead by this. */
  aheadMs = 0
  /** Additional time that a message from this process takes. */
  delayMs = 0
  hasJoined = false
  readonly #service: Service
  #handlers!: MailboxHandlers

  constructor(service: Service, name: string) {
    this.name = name
    this.#service = service
    service.names.add(name)
    this.limiter = new Limiter({
      self: name,
      now: () => service.time.now + this.aheadMs,
      log: {
        debug: (details: object) => void this.noted.push(details),
        warn: (_: object, message: string) => void this.logged.push(message),
      },
      openMailbox: (handlers) => {
        this.#handlers = handlers
        return {
          send: (to, payload) => service.deliver(this, [to], payload),
          announce: (payload) => service.deliver(this, [...service.processes.keys()], payload),
          close: async () => void service.processes.delete(name),
        }
      },
    })
    void this.limiter.waitUntilJoined().then(() => {
      this.hasJoined = true
    })
  }

  connect(): void {
    this.#service.processes.set(this.name, this)
    this.#handlers.onConnected()
  }

  disconnect(): void {
    this.#service.processes.delete(this.name)
    this.#handlers.onDisconnected()
  }

  /** Ends silently. */
  kill(): void {
    this.#service.processes.delete(this.name)
    this.isMute = true
    this.isDeaf = true
  }

  hear(payload: string): void {
    if (!this.isDeaf) this.#handlers.onMessage(Buffer.from(payload))
  }

  /** Receives a message that the test wrote. */
  hearMessage(message: LimitMessage): void {
    this.hear(JSON.stringify(message))
  }

  learnUndelivered(to: string): void {
    if (!this.isDeaf) this.#handlers.onUndelivered(to)
  }

  ask(limits: Limits, ...subjects: string[]): Asked {
    const wanted = (subjects.length === 0 ? ['acc'] : subjects).map(
      (subject): SubjectLimits => ({ subject, limits }),
    )
    const asked: Asked = { decisions: null, close: () => permit.close() }
    const permit = this.limiter.take(wanted, (decisions) => {
      asked.decisions = decisions
    })
    return asked
  }

  askMany(times: number, limits: Limits): Asked[] {
    return Array.from({ length: times }, () => this.ask(limits))
  }
}

class Service {
  readonly time = new VirtualTime()
  readonly processes = new Map<string, Process>()
  /** Includes processes that have ended. */
  readonly names = new Set<string>()
  /** Messages to processes that never existed. */
  readonly strays: string[] = []
  /** Whether the end of a process is noticed by a message that comes back. */
  isLossNoticed = true
  /** Processes that hear nothing of each other. */
  areApart: (from: string, to: string) => boolean = () => false

  start(name: string): Process {
    const process = new Process(this, name)
    process.connect()
    return process
  }

  /** Starts processes one after the other; the first leads. */
  async startAll<Names extends readonly string[]>(
    ...names: Names
  ): Promise<{ [At in keyof Names]: Process }> {
    const processes: Process[] = []
    for (const name of names) {
      processes.push(this.start(name))
      await this.pass(400)
    }
    return processes as never
  }

  deliver(from: Process, targets: readonly string[], payload: string): void {
    if (from.isMute) return
    from.sent += 1
    this.strays.push(...targets.filter((to) => !this.names.has(to)))
    for (const to of targets)
      this.time.after(LATENCY_MS + from.delayMs, () => {
        if (this.areApart(from.name, to)) return
        const target = this.processes.get(to)
        if (target !== undefined) target.hear(payload)
        else if (this.isLossNoticed) from.learnUndelivered(to)
      })
  }

  async pass(ms: number): Promise<void> {
    this.time.after(ms, () => this.time.promiseSettled())
    await this.time.run(this.time.now + ms)
  }
}

interface Handle {
  readonly cancel: () => void
  unref(): Handle
}

/** Runs the scenario with timers that go by the clock of its service. */
const inVirtualTime = (scenario: (t: Test, service: Service) => Promise<void>) => async (t: Test) => {
  const own = { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval }
  const service = new Service()
  const { time } = service
  const handle = (cancel: () => void): Handle => ({ cancel, unref: () => handle(cancel) })
  const once = (work: () => void, ms = 0) => handle(time.after(ms, work))
  const repeat = (work: () => void, ms: number) => {
    let cancel = () => {}
    const plan = () => {
      cancel = time.after(ms, () => {
        plan()
        work()
      })
    }
    plan()
    return handle(() => cancel())
  }
  const clear = (handle?: Handle) => handle?.cancel()
  Object.assign(globalThis, {
    setTimeout: once,
    setImmediate: (work: () => void) => once(work),
    setInterval: repeat,
    clearTimeout: clear,
    clearInterval: clear,
  })
  try {
    await scenario(t, service)
    t.same(service.strays, [], 'every message has a receiver')
    for (const { logged } of service.processes.values()) t.same(logged, [])
  } finally {
    Object.assign(globalThis, own)
  }
}

t.test('who leads', async (t) => {
  t.test(
    'a process without NATS decides by itself, and waits for it for 2.5 s',
    inVirtualTime(async (t, service) => {
      const alone = new Process(service, 'a')
      const [first, second] = [alone.ask(atOnce(1)), alone.ask(atOnce(1))]
      t.same([first, second].map(isAdmitted), [true, false])
      t.equal(alone.limiter.processCount, 1)
      await service.pass(2_499)
      t.notOk(alone.hasJoined)
      await service.pass(1)
      t.ok(alone.hasJoined)
      first.close()
      t.ok(isAdmitted(alone.ask(atOnce(1))))
      alone.hearMessage(writeReport('b', 'b'))
      t.equal(alone.limiter.processCount, 1, 'it ignores a message that it reads too late')
      void alone.limiter.close()
      t.equal(alone.sent, 0)
    }),
  )

  t.test(
    'the first process leads after 300 ms, and those that come later follow it at once',
    inVirtualTime(async (t, service) => {
      const a = service.start('a')
      t.ok(isAdmitted(a.ask(perMinute(3))), 'nobody waits while it joins')
      await service.pass(299)
      t.notOk(a.hasJoined)
      await service.pass(1)
      t.ok(a.hasJoined)
      t.ok(isAdmitted(a.ask(perMinute(3))), 'it decides at once')
      const b = service.start('b')
      await service.pass(ROUND_TRIP_MS)
      t.ok(b.hasJoined)
      t.same([a.limiter.processCount, b.limiter.processCount], [2, 2])
      const asked = [b.ask(perMinute(3)), b.ask(perMinute(3))]
      await service.pass(ROUND_TRIP_MS - 1)
      t.same(asked.map(isAdmitted), [null, null])
      await service.pass(1)
      t.same(asked.map(isAdmitted), [true, false], 'what the leader admitted before counts')
      t.match(asked[0]!.decisions, [{ refusedBy: null, remainingRequests: 0 }])
      const { sent } = a
      await service.pass(1_000)
      t.equal(a.sent - sent, 1, 'it reports every second')
    }),
  )

  t.test(
    'of processes that start together the oldest leads',
    inVirtualTime(async (t, service) => {
      const [c, a, b] = ['c', 'a', 'b'].map((name) => service.start(name)) as [Process, Process, Process]
      await service.pass(299)
      t.notOk([a, b, c].some(({ hasJoined }) => hasJoined))
      await service.pass(11)
      t.ok(isAdmitted(a.ask(atOnce(1))), 'at once')
      const asked = [b, c].map((process) => process.ask(atOnce(1)))
      await service.pass(2 * ROUND_TRIP_MS)
      t.same(asked.map(isAdmitted), [false, false])
      t.same(
        [a, b, c].map(({ limiter }) => limiter.processCount),
        [3, 3, 3],
      )
      t.notMatch(JSON.stringify([b.noted, c.noted]), 'gathering', 'the other processes do not try')
    }),
  )

  t.test(
    'a process that finds no leader joins once there is one',
    inVirtualTime(async (t, service) => {
      service.isLossNoticed = false
      const [a, b] = [service.start('a'), service.start('b')]
      await service.pass(100)
      a.kill()
      await service.pass(1_000)
      t.notOk(b.hasJoined)
      await service.pass(3_000)
      t.match(b.noted, [
        { mode: 'joining' },
        { mode: 'following' },
        { process: 'a' },
        { mode: 'gathering' },
        {},
      ])
      t.ok(isAdmitted(b.ask(atOnce(1))))
    }),
  )

  t.test(
    'of two leaders the older one stays once they hear each other',
    inVirtualTime(async (t, service) => {
      service.areApart = () => true
      const [a, b] = await service.startAll('a', 'b')
      t.same([a.limiter.processCount, b.limiter.processCount], [1, 1])
      t.same(
        [a, b].map((process) => isAdmitted(process.ask(atOnce(2)))),
        [true, true],
      )
      t.same(
        [a, b].map((process) => isAdmitted(process.ask(perMinute(3), 'rpm'))),
        [true, true],
      )
      // The message of the younger process arrives first.
      await service.pass(500)
      service.areApart = () => false
      await service.pass(110)
      const [third, other] = [b.ask(atOnce(2)), b.ask(atOnce(1), 'other')]
      t.same([third, other].map(isAdmitted), [null, null], 'it follows at once')
      await service.pass(ROUND_TRIP_MS)
      t.same([third, other].map(isAdmitted), [false, true], 'slots of both count')
      const decided = a.ask(atOnce(1), 'other')
      t.equal(isAdmitted(decided), null, 'the older one decides, and asks the holder')
      await service.pass(ROUND_TRIP_MS)
      t.equal(isAdmitted(decided), false)
      t.same(
        [1, 2].map(() => isAdmitted(a.ask(perMinute(3), 'rpm'))),
        [true, false],
      )
    }),
  )
})

t.test('processes that are lost', async (t) => {
  t.test(
    'the leader is killed: the next one leads in milliseconds, without its slots, with its minute',
    inVirtualTime(async (t, service) => {
      const [a, b, c] = await service.startAll('a', 'b', 'c')
      const held = [a.ask(atOnce(3)), b.ask(atOnce(3)), c.ask(atOnce(3))]
      a.askMany(2, perMinute(5))
      t.equal(isAdmitted(a.ask(perMinute(2))), false)
      await service.pass(1_000)
      t.same(held.map(isAdmitted), [true, true, true])
      a.kill()
      const waiting = [b.ask(perMinute(5)), c.ask(perMinute(5)), c.ask(perMinute(5)), c.ask(perMinute(5))]
      await service.pass(12)
      t.same(waiting.map(isAdmitted), [true, true, true, false])
      t.same([b.limiter.processCount, c.limiter.processCount], [2, 2])
      t.equal(isAdmitted(b.ask(atOnce(3))), true, 'b decides at once: it leads')
      const last = c.ask(atOnce(3))
      await service.pass(2 * ROUND_TRIP_MS)
      t.equal(isAdmitted(last), false)
    }),
  )

  t.test(
    'a process that says nothing for more than 3 s is gone, and its slots are free',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      const held = b.ask(atOnce(1))
      await service.pass(1_000)
      t.ok(isAdmitted(held))
      service.isLossNoticed = false
      b.kill()
      await service.pass(2_500)
      t.equal(a.limiter.processCount, 2)
      t.equal(isAdmitted(a.ask(atOnce(1))), null, 'it is asked whether it holds the slot')
      await service.pass(2_000)
      t.equal(a.limiter.processCount, 1)
      t.ok(isAdmitted(a.ask(atOnce(1))))
    }),
  )

  t.test(
    'requests to a leader that is not heard are decided here after a second',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      service.isLossNoticed = false
      a.kill()
      const asked = [b.ask(atOnce(1)), b.ask(atOnce(1))]
      await service.pass(999)
      t.same(asked.map(isAdmitted), [null, null])
      await service.pass(1)
      t.same(asked.map(isAdmitted), [true, false])
      await service.pass(4_000)
      t.equal(b.limiter.processCount, 1)
      t.equal(isAdmitted(b.ask(atOnce(2))), true, 'it leads now')
    }),
  )

  t.test(
    'a new leader waits for the reports of others for half a second',
    inVirtualTime(async (t, service) => {
      const [a, b, c] = await service.startAll('a', 'b', 'c')
      c.isMute = true
      a.kill()
      const asked = b.ask(atOnce(1))
      await service.pass(20)
      b.hearMessage(writeReport('c', 'a'))
      await service.pass(ROUND_TRIP_MS + 470)
      t.equal(isAdmitted(asked), null, 'even if a process reports that does not know of it yet')
      await service.pass(20)
      t.equal(isAdmitted(asked), true)
    }),
  )

  t.test(
    'processes that are gone are not waited for',
    inVirtualTime(async (t, service) => {
      const [a, b, c] = await service.startAll('a', 'b', 'c')
      for (const process of [a, c]) process.kill()
      const asked = b.ask(atOnce(1))
      await service.pass(5 * ROUND_TRIP_MS)
      t.equal(isAdmitted(asked), true)
    }),
  )

  t.test(
    'a process that waits for a leader looks for the next one',
    inVirtualTime(async (t, service) => {
      const [a, b, c] = await service.startAll('a', 'b', 'c')
      for (const process of [a, b]) process.kill()
      const asked = c.ask(atOnce(1))
      await service.pass(LATENCY_MS)
      service.isLossNoticed = false
      await service.pass(50)
      service.isLossNoticed = true
      t.equal(c.limiter.processCount, 2)
      await service.pass(55)
      t.equal(isAdmitted(asked), true)
    }),
  )

  t.test(
    'a process that ends in order says so',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      t.ok(isAdmitted(a.ask(atOnce(1))))
      void a.limiter.close()
      await service.pass(LATENCY_MS)
      t.equal(b.limiter.processCount, 1)
      t.ok(isAdmitted(b.ask(atOnce(1))))
      const sent = a.sent
      await service.pass(5_000)
      t.equal(a.sent, sent, 'and nothing afterwards')
    }),
  )

  t.test(
    'silence means nothing to a process that was stopped itself',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      service.isLossNoticed = false
      a.kill()
      await service.pass(590)
      b.aheadMs = 60_000
      await service.pass(2_900)
      t.equal(b.limiter.processCount, 2)
      await service.pass(2_000)
      t.equal(b.limiter.processCount, 1, 'but later it does')
    }),
  )

  t.test(
    'a process counts as silent after 3 s and as stopped after 2 s, to the millisecond',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      service.isLossNoticed = false
      await service.pass(300)
      // Its last message arrived at 1,001; the rounds of the other process are at 2,400, 3,400 and so on.
      a.kill()
      await service.pass(1_000)
      b.aheadMs = 1_000
      await service.pass(400)
      b.aheadMs = 601
      await service.pass(1_000)
      t.equal(b.limiter.processCount, 2, '3 s to the round')
      await service.pass(1_000)
      t.equal(b.limiter.processCount, 1)
    }),
  )
})

t.test('requests and slots', async (t) => {
  t.test(
    'a slot that is being given back refuses nobody',
    inVirtualTime(async (t, service) => {
      const [, b, c] = await service.startAll('a', 'b', 'c')
      const held = b.ask(atOnce(1))
      await service.pass(ROUND_TRIP_MS)
      const next = c.ask(atOnce(1))
      await service.pass(LATENCY_MS)
      held.close()
      await service.pass(2 * ROUND_TRIP_MS)
      t.equal(isAdmitted(next), true)
      const refused = b.ask(atOnce(1))
      await service.pass(3 * ROUND_TRIP_MS)
      t.match(refused.decisions, [{ refusedBy: 'concurrency', remainingConcurrency: 0 }])
    }),
  )

  t.test(
    'a process that does not say whether it holds a slot is waited for 100 ms',
    inVirtualTime(async (t, service) => {
      const [a, b, c] = await service.startAll('a', 'b', 'c')
      b.ask(atOnce(1))
      await service.pass(ROUND_TRIP_MS)
      b.isMute = true
      const asked = [a.ask(atOnce(1)), c.ask(atOnce(1))]
      await service.pass(99)
      t.same(asked.map(isAdmitted), [null, null])
      await service.pass(1)
      t.same(isAdmitted(asked[0]!), false)
      await service.pass(103)
      t.same(isAdmitted(asked[1]!), false, 'the next round is its own')
    }),
  )

  t.test(
    'a request that is over the minute asks nobody for slots',
    inVirtualTime(async (t, service) => {
      const [, b, c] = await service.startAll('a', 'b', 'c')
      const both = { requestsPerMinute: 1, concurrency: 1 }
      const asked = [b.ask(both), c.ask(both)]
      await service.pass(ROUND_TRIP_MS)
      t.same(asked.map(isAdmitted), [true, false])
      t.match(asked[1]!.decisions, [{ refusedBy: 'requests' }])
    }),
  )

  t.test(
    'a request that is over before it was sent takes nothing',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      const asked = b.ask(atOnce(1))
      asked.close()
      await service.pass(ROUND_TRIP_MS)
      t.equal(asked.decisions, null)
      t.ok(isAdmitted(a.ask(atOnce(1))))
    }),
  )

  t.test(
    'a slot is released once, and only by the request that holds it',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      for (const process of [a, b]) {
        const held = [process.ask(atOnce(3), 'acc', process.name), process.ask(atOnce(2), 'acc')]
        await service.pass(ROUND_TRIP_MS)
        const limits = { requestsPerMinute: 9, concurrency: 2 }
        const others = [
          ...[process.ask(perMinute(9)), process.ask(limits, process.name, 'acc')],
          process.ask(limits, process.name, 'acc'),
        ]
        others[2]!.close()
        await service.pass(LATENCY_MS)
        for (const other of others) other.close()
        await service.pass(3 * ROUND_TRIP_MS)
        held[0]!.close()
        held[0]!.close()
        await service.pass(ROUND_TRIP_MS)
        for (const { limiter } of [a, process])
          t.same(
            ['acc', process.name].map((subject) => limiter.countInFlight(subject)),
            [1, 0],
            process.name,
          )
        held[1]!.close()
        await service.pass(ROUND_TRIP_MS)
      }
    }),
  )

  t.test(
    'one that is over before its decision comes gives its slot back',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      const asked = b.ask(atOnce(1))
      await service.pass(LATENCY_MS)
      asked.close()
      await service.pass(2 * ROUND_TRIP_MS)
      t.equal(asked.decisions, null)
      t.equal(b.limiter.countInFlight('acc'), 0)
      t.ok(isAdmitted(a.ask(atOnce(1))))
    }),
  )

  t.test(
    'what was decided here is withdrawn from the leader that answers too late',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      a.delayMs = 1_500
      const late = b.ask({ requestsPerMinute: 2, concurrency: 2 })
      await service.pass(1_200)
      t.equal(isAdmitted(late), true)
      a.delayMs = 0
      late.close()
      await service.pass(3_000)
      t.equal(a.limiter.countInFlight('acc'), 0)
      const rest = a.askMany(2, perMinute(2))
      t.same(rest.map(isAdmitted), [true, false], 'it counts once in the minute')
    }),
  )

  t.test(
    'when NATS goes, each decides by itself, also what waits; when it comes back, all of it counts',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      const held = [a.ask(atOnce(2)), b.ask(atOnce(2))]
      await service.pass(ROUND_TRIP_MS)
      t.same(held.map(isAdmitted), [true, true])
      const waiting = b.ask(perMinute(4))
      b.ask(perMinute(4)).close()
      b.delayMs = 50
      const doubtful = a.ask(atOnce(1))
      t.equal(isAdmitted(doubtful), null)
      for (const process of [a, b]) process.disconnect()
      b.delayMs = 0
      t.same([waiting, doubtful].map(isAdmitted), [true, false])
      t.same([a.limiter.processCount, b.limiter.processCount], [1, 1])
      t.equal(isAdmitted(b.ask(atOnce(2))), true, 'what others hold is unknown')
      t.ok(isAdmitted(a.ask(perMinute(4))))
      await service.pass(10_000)
      for (const process of [b, a]) process.connect()
      await service.pass(400)
      const after = a.askMany(3, perMinute(4))
      t.same(after.map(isAdmitted), [true, true, false])
      const slot = b.ask(atOnce(3))
      await service.pass(2 * ROUND_TRIP_MS)
      t.equal(isAdmitted(slot), false)
      await service.pass(50_000)
      t.same(a.askMany(3, perMinute(4)).map(isAdmitted), [true, true, false], 'a minute after each request')
    }),
  )

  t.test(
    'thousands of requests with two subjects go out in messages of whole requests',
    inVirtualTime(async (t, service) => {
      const [, b] = await service.startAll('a', 'b')
      const sent = b.sent
      const limits = perMinute(MAX_LIMIT_ROWS)
      const asked = Array.from({ length: MAX_LIMIT_ROWS / 2 + 1 }, () => b.ask(limits, 'key', 'acc'))
      asked.push(b.ask(limits, 'key', 'acc', 'third'))
      await service.pass(ROUND_TRIP_MS)
      t.ok(asked.every(isAdmitted))
      t.equal(b.sent - sent, 2)
      t.match(asked.at(-1)!.decisions, [{}, {}, { remainingRequests: MAX_LIMIT_ROWS - 1 }])
    }),
  )

  t.test(
    'at the end of a message, a request that one subject refuses counts against none',
    inVirtualTime(async (t, service) => {
      const [, b] = await service.startAll('a', 'b')
      const limits = perMinute(MAX_LIMIT_ROWS / 2)
      b.ask(limits, 'acc')
      const asked = Array.from({ length: MAX_LIMIT_ROWS / 2 }, () => b.ask(limits, 'key', 'acc'))
      await service.pass(ROUND_TRIP_MS)
      t.equal(
        asked.findIndex((one) => isAdmitted(one) === false),
        asked.length - 1,
      )
      const rest = [b.ask(limits, 'key'), b.ask(limits, 'key')]
      await service.pass(ROUND_TRIP_MS)
      t.same(rest.map(isAdmitted), [true, false])
    }),
  )

  t.test(
    'a process ignores the messages of leadership while another one leads',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b', 'c')
      const asked = b.ask(atOnce(2))
      b.hearMessage({ type: 'answers', from: 'c', number: 9, answers: [[1, 'requests', 0, 0, 0]] })
      b.hearMessage({ type: 'asks', from: 'c', asks: [[7, 'acc', null, 2]], released: [], withdrawn: [] })
      await service.pass(ROUND_TRIP_MS)
      t.equal(isAdmitted(asked), true)
      a.kill()
      b.ask(perMinute(1))
      await service.pass(5 * ROUND_TRIP_MS)
      t.equal(isAdmitted(b.ask(atOnce(2))), true, 'one slot is free')
    }),
  )

  t.test(
    'a report in parts counts once it is complete',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      b.ask(atOnce(2))
      await service.pass(ROUND_TRIP_MS)
      const count = () => ['acc', 'other'].map((subject) => a.limiter.countInFlight(subject))
      a.hearMessage(writeReport('b', 'a', { heard: 1, held: [['other', 1]], more: true }))
      t.same(count(), [1, 0])
      a.hearMessage(writeReport('b', 'a', { heard: 1, held: [['acc', 1]] }))
      t.same(count(), [1, 1])
    }),
  )

  t.test(
    'a message that no process of this version sends is reported once',
    inVirtualTime(async (t, service) => {
      const [a] = await service.startAll('a')
      for (const payload of ['{', '[]', '{"type":"other"}']) a.hear(payload)
      t.same(a.logged.splice(0), ['Dropped malformed rate-limit message'])
    }),
  )
})

t.test('what is under way meanwhile', async (t) => {
  t.test(
    'a process that ends while it is asked for a slot frees it at once',
    inVirtualTime(async (t, service) => {
      const [, b, c] = await service.startAll('a', 'b', 'c')
      b.ask(atOnce(1))
      await service.pass(ROUND_TRIP_MS)
      const asked = c.ask(atOnce(1))
      b.kill()
      await service.pass(3 * ROUND_TRIP_MS)
      t.equal(isAdmitted(asked), true)
    }),
  )

  t.test(
    'a report that was written before a grant was read takes no slot away',
    inVirtualTime(async (t, service) => {
      const [first, a, b] = await service.startAll('0', 'a', 'b')
      b.askMany(3, perMinute(9)).push(b.ask(atOnce(9), 'other'))
      await service.pass(ROUND_TRIP_MS)
      b.ask(atOnce(9), 'other')
      await service.pass(ROUND_TRIP_MS)
      // Messages of the previous leader say nothing about this one.
      first.kill()
      a.ask(perMinute(9), 'another')
      await service.pass(999 - 400 - 2 * ROUND_TRIP_MS)
      const asked = b.ask({ requestsPerMinute: 9, concurrency: 2 })
      await service.pass(ROUND_TRIP_MS)
      t.equal(isAdmitted(asked), true)
      t.equal(a.limiter.countInFlight('acc'), 1)
      await service.pass(2_000)
      t.equal(a.limiter.countInFlight('acc'), 1, 'nor does a later one count it twice')
      t.match(a.ask(perMinute(9)).decisions, [{ remainingRequests: 9 - 5 }])
      asked.close()
      await service.pass(2_000)
      t.equal(a.limiter.countInFlight('acc'), 0)
    }),
  )

  t.test(
    'a process that no longer follows drops what was granted',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      a.delayMs = 50
      b.ask(atOnce(2))
      await service.pass(LATENCY_MS)
      t.equal(a.limiter.countInFlight('acc'), 1)
      a.hearMessage(writeReport('b', null))
      t.equal(a.limiter.countInFlight('acc'), 0)
    }),
  )

  t.test(
    'a process that was stopped reads the answers before it decides by itself',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      t.ok(isAdmitted(a.ask(atOnce(1))))
      a.delayMs = 150
      const asked = b.ask(atOnce(1))
      b.aheadMs = 10_000
      await service.pass(140)
      t.equal(isAdmitted(asked), null)
      await service.pass(20)
      t.equal(isAdmitted(asked), false)
    }),
  )

  t.test(
    'a pause of 100 ms is too short to count',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      service.isLossNoticed = false
      a.kill()
      const asked = b.ask(atOnce(1))
      await service.pass(850)
      b.aheadMs = 100
      await service.pass(50)
      t.equal(isAdmitted(asked), true)
    }),
  )

  t.test(
    'an answer that is late makes a process look whether its leader is there',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      service.isLossNoticed = false
      a.kill()
      const asked = b.ask(atOnce(1))
      await service.pass(40)
      service.isLossNoticed = true
      await service.pass(50)
      t.equal(isAdmitted(asked), null)
      await service.pass(20)
      t.equal(isAdmitted(asked), true)
    }),
  )

  t.test(
    'a message that is 50 ms old is not late',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      b.ask(atOnce(9))
      await service.pass(50)
      a.delayMs = 500
      b.ask(atOnce(9))
      await service.pass(40)
      const { sent } = b
      await service.pass(20)
      t.equal(b.sent, sent)
      await service.pass(100)
      t.equal(b.sent, sent + 1, 'but later it is')
    }),
  )

  t.test(
    'who finds that a process is gone tells the others',
    inVirtualTime(async (t, service) => {
      const [a, b, c] = await service.startAll('a', 'b', 'c')
      a.kill()
      b.ask(atOnce(1))
      await service.pass(4 * ROUND_TRIP_MS)
      t.same([b.limiter.processCount, c.limiter.processCount], [2, 2])
    }),
  )

  t.test(
    'a process that is taken for gone says that it is there',
    inVirtualTime(async (t, service) => {
      const [a, b, c] = await service.startAll('a', 'b', 'c')
      const held = c.ask(atOnce(1))
      await service.pass(ROUND_TRIP_MS)
      t.ok(isAdmitted(held))
      b.learnUndelivered('c')
      t.equal(b.limiter.processCount, 2)
      const { sent } = b
      b.learnUndelivered('nobody')
      t.equal(b.sent, sent)
      await service.pass(2 * ROUND_TRIP_MS)
      t.same(
        [a, b, c].map(({ limiter }) => limiter.processCount),
        [3, 3, 3],
      )
      t.equal(isAdmitted(a.ask(atOnce(1))), null, 'with the slots that it holds')
    }),
  )

  t.test(
    'a refused request gives nothing back',
    inVirtualTime(async (t, service) => {
      const [a, b] = await service.startAll('a', 'b')
      const [held, refused] = [a.ask(atOnce(1)), a.ask(atOnce(1))]
      refused.close()
      t.same([isAdmitted(held), a.limiter.countInFlight('acc')], [true, 1])
      const other = b.ask(atOnce(1))
      await service.pass(2 * ROUND_TRIP_MS)
      other.close()
      await service.pass(ROUND_TRIP_MS)
      t.equal(a.limiter.countInFlight('acc'), 1)
      held.close()
      await service.pass(2_000)
      t.same([a.limiter.countInFlight('acc'), b.limiter.countInFlight('acc')], [0, 0])
    }),
  )

  t.test(
    'requests to a process that is about to lead wait until it does',
    inVirtualTime(async (t, service) => {
      const [a, b, c, d] = await service.startAll('a', 'b', 'c', 'd')
      d.isMute = true
      a.kill()
      b.ask(perMinute(2))
      await service.pass(20)
      const asked = [c.ask(perMinute(2)), c.ask(perMinute(2))]
      const over = c.ask(perMinute(2))
      over.close()
      await service.pass(100)
      t.same(asked.map(isAdmitted), [null, null])
      await service.pass(500)
      t.same(asked.map(isAdmitted), [true, false])
      t.equal(over.decisions, null)
    }),
  )
})

t.test('the process that decides', async (t) => {
  /** An arbiter whose messages are kept. */
  function startArbiter({ isOpen = true, onDecided = (_name: string) => {} } = {}) {
    const sent: string[] = []
    const own: string[] = []
    const state = new LimiterState()
    const names = new Map<LimitedRequest, string>()
    const arbiter = new Arbiter({
      ...{ self: 'a', state, now: () => 0 },
      send: (to, message) => {
        const answers =
          message.type === 'answers' ? message.answers.map(([serial, by]) => `${serial}:${by ?? 'yes'}`) : []
        sent.push([to, message.type, ...('token' in message ? [message.token] : answers)].join(' '))
      },
      onOwnDecisions(request, [decision]) {
        const name = names.get(request)!
        own.push(`${name} ${decision?.refusedBy}`)
        onDecided(name)
      },
    })
    if (isOpen) arbiter.open()
    const ask = (name: string, limits = atOnce(1), ...subjects: string[]) => {
      const wanted = (subjects.length === 0 ? ['acc'] : subjects).map((subject) => ({ subject, limits }))
      const request = new LimitedRequest(wanted, { onDecisions() {}, onReleased() {} })
      names.set(request, name)
      arbiter.ask(request)
      return request
    }
    const onAsks = (
      from: string,
      asks: [serial: number, subject: string, rpm: number | null, concurrency: number | null][],
      more: Partial<Pick<LimitAsks, 'released' | 'withdrawn'>> = {},
    ) => arbiter.onAsks({ type: 'asks', from, asks, released: [], withdrawn: [], ...more })
    const close = () => arbiter.close().map((request) => names.get(request))
    return { arbiter, ask, onAsks, close, state, sent, own }
  }

  t.test('gives back the requests of its own process that wait, once it decides no longer', async (t) => {
    const early = startArbiter({ isOpen: false })
    early.ask('one')
    early.onAsks('b', [[1, 'acc', null, 1]])
    t.same([early.own, early.sent], [[], []])
    t.same(early.close(), ['one'])
    early.arbiter.open()
    t.same([early.own, early.sent], [[], []], 'nothing is left of them')

    const { arbiter, ask, close, state, own, sent } = startArbiter()
    state.setSlots(
      'b',
      new Map([
        ['acc', 1],
        ['other', 1],
      ]),
    )
    ask('in the round')
    ask('in the next', atOnce(1), 'other')
    t.same(sent, ['b flush 1'])
    t.same(close(), ['in the round', 'in the next'])
    arbiter.onFlushed('b', 1)
    ask('later', atOnce(9))
    t.same(own, [])
    t.same(close(), ['later'])
  })

  t.test('a request made during the refusal of another waits for its own round', async (t) => {
    const { arbiter, ask, state, own } = startArbiter({
      onDecided: (name) => name.length === 1 && ask(`${name} again`),
    })
    state.setSlots('b', new Map([['acc', 1]]))
    for (const name of ['x', 'y', 'z']) ask(name)
    for (const round of [1, 2, 3, 4]) arbiter.onFlushed('b', round)
    const names = ['x', 'y', 'z', 'x again', 'y again', 'z again']
    t.same(
      own.slice(0, 4).sort(),
      names
        .slice(0, 4)
        .map((name) => `${name} concurrency`)
        .sort(),
    )
    for (const round of [5, 6]) arbiter.onFlushed('b', round)
    t.same(own.toSorted(), names.map((name) => `${name} concurrency`).sort(), 'none is lost')
  })

  t.test('takes back what is withdrawn, wherever it waits', async (t) => {
    const early = startArbiter({ isOpen: false })
    early.onAsks('b', [
      [1, 'acc', null, 5],
      [2, 'acc', null, 5],
    ])
    early.onAsks('c', [[1, 'acc', null, 5]])
    early.onAsks('b', [], { withdrawn: [1] })
    early.arbiter.open()
    t.same(early.sent, ['b answers 2:yes', 'c answers 1:yes'])

    const { arbiter, onAsks, state, sent } = startArbiter()
    state.setSlots(
      'd',
      new Map([
        ['acc', 1],
        ['other', 1],
      ]),
    )
    onAsks('b', [
      [1, 'acc', null, 1],
      [2, 'acc', null, 1],
    ])
    onAsks('b', [
      [3, 'other', null, 1],
      [4, 'other', null, 1],
    ])
    onAsks('b', [], { withdrawn: [1, 3] })
    arbiter.onFlushed('d', 1)
    arbiter.onFlushed('d', 2)
    t.same(sent, ['d flush 1', 'd flush 2', 'b answers 2:concurrency 4:concurrency'])

    const granted = startArbiter()
    granted.onAsks('b', [
      [1, 'acc', 2, 5],
      [2, 'acc', 2, 5],
    ])
    granted.onAsks('b', [], { withdrawn: [2, 7] })
    t.equal(granted.state.countInFlight('acc'), 1)
    granted.onAsks('b', [], { withdrawn: [2] })
    t.equal(granted.state.countInFlight('acc'), 1, 'once')
    granted.onAsks('c', [[9, 'acc', 2, 5]])
    t.equal(granted.sent.at(-1), 'c answers 9:yes', 'and its place in the minute')
  })

  t.test('forgets the requests of a process that is gone', async (t) => {
    const early = startArbiter({ isOpen: false })
    early.onAsks('b', [[1, 'acc', null, 5]])
    early.onAsks('c', [[1, 'acc', null, 5]])
    early.arbiter.onProcessLost('b')
    early.arbiter.open()
    t.same(early.sent, ['c answers 1:yes'])

    const { arbiter, onAsks, state, sent } = startArbiter()
    state.setSlots('d', new Map([['acc', 1]]))
    onAsks('b', [[1, 'acc', null, 1]])
    onAsks('c', [[1, 'acc', null, 1]])
    arbiter.onProcessLost('c')
    arbiter.onFlushed('d', 1)
    t.same(sent, ['d flush 1', 'b answers 1:concurrency'], 'also one of the next round')

    const next = startArbiter()
    next.state.setSlots('d', new Map([['acc', 1]]))
    next.state.setSlots('e', new Map([['other', 1]]))
    next.onAsks('b', [[1, 'acc', null, 1]])
    next.onAsks('b', [[2, 'other', null, 1]])
    next.arbiter.onProcessLost('e')
    next.arbiter.onFlushed('d', 1)
    t.equal(next.sent.at(-1), 'b answers 2:concurrency', 'no other process is left to ask')
  })

  t.test(
    'it waits 100 ms in each round',
    inVirtualTime(async (t, service) => {
      const { arbiter, onAsks, state, sent } = startArbiter()
      state.setSlots(
        'd',
        new Map([
          ['acc', 1],
          ['other', 1],
        ]),
      )
      onAsks('b', [[1, 'acc', null, 1]])
      onAsks('b', [[2, 'other', null, 1]])
      await service.pass(50)
      arbiter.onFlushed('d', 1)
      await service.pass(99)
      t.same(sent, ['d flush 1', 'b answers 1:concurrency', 'd flush 2'])
      await service.pass(1)
      t.equal(sent.at(-1), 'b answers 2:concurrency')
    }),
  )

  t.test(
    'asks each holder but itself and the one that asks, and waits for the words of this round',
    async (t) => {
      const { arbiter, ask, onAsks, state, sent, own } = startArbiter()
      for (const holder of ['a', 'b', 'c', 'd']) state.setSlots(holder, new Map([['acc', 1]]))
      onAsks('b', [[1, 'acc', null, 4]])
      t.same(sent, ['c flush 1', 'd flush 1'])
      arbiter.onFlushed('c', 1)
      arbiter.onFlushed('c', 1)
      arbiter.onFlushed('d', 0)
      arbiter.onFlushed('nobody', 1)
      ask('free', atOnce(5))
      ask('over', atOnce(1), 'alone')
      ask('full', atOnce(1), 'alone')
      t.same(own, ['free null', 'over null', 'full concurrency'], 'at once where nobody else holds a slot')
      t.equal(sent.length, 2)
      arbiter.onFlushed('d', 1)
      t.equal(sent.at(-1), 'b answers 1:concurrency')
      const closed = startArbiter({ isOpen: false })
      closed.ask('closed').close()
      closed.arbiter.open()
      t.same(closed.own, [], 'and not for nobody')
    },
  )

  t.test(
    'asks nobody where the minute is over, or where no subject that is full is held by others',
    async (t) => {
      const { onAsks, state, sent } = startArbiter()
      state.setSlots(
        'd',
        new Map([
          ['roomy', 1],
          ['acc', 1],
        ]),
      )
      onAsks('b', [[1, 'acc', 1, 5]])
      onAsks('b', [[2, 'acc', 1, 2]])
      onAsks('b', [
        [3, 'roomy', null, 9],
        [3, 'own', null, 1],
      ])
      onAsks('b', [
        [4, 'roomy', null, 9],
        [4, 'own', null, 1],
      ])
      onAsks('b', [
        [5, 'acc', 1, 9],
        [5, 'roomy', null, 2],
      ])
      t.same(sent, [
        ...[
          'b answers 1:yes',
          'b answers 2:requests',
          'b answers 3:yes 3:yes',
          'b answers 4:yes 4:concurrency',
        ],
        'b answers 5:requests 5:concurrency',
      ])
    },
  )

  t.test('counts what it granted until the process has read it', async (t) => {
    const { arbiter, onAsks, state } = startArbiter()
    onAsks('b', [
      [1, 'acc', null, 5],
      [2, 'acc', 5, null],
    ])
    onAsks('b', [[3, 'acc', null, 5]])
    t.equal(state.countInFlight('acc'), 2)
    arbiter.onSlots('b', new Map(), 0)
    t.equal(state.countInFlight('acc'), 2)
    arbiter.onSlots('b', new Map([['acc', 1]]), 1)
    t.equal(state.countInFlight('acc'), 2, 'the second is still on its way')
    arbiter.onSlots('b', new Map(), 2)
    t.equal(state.countInFlight('acc'), 0)
    onAsks('b', [
      [4, 'full', null, 1],
      [5, 'full', null, 1],
    ])
    arbiter.onSlots('b', new Map(), 2)
    t.equal(state.countInFlight('full'), 1, 'what was refused was not granted')
  })

  t.test('sends thousands of answers in several messages', async (t) => {
    const { onAsks, sent } = startArbiter()
    const asks = Array.from(
      { length: MAX_LIMIT_ROWS + 1 },
      (_, at) => [at, 'acc', null, MAX_LIMIT_ROWS * 2] as const,
    )
    onAsks('b', asks as never)
    t.same(
      sent.map((message) => message.split(' ').length - 2),
      [MAX_LIMIT_ROWS, 1],
    )
  })
})

t.test(
  'messages stay below their maximum length and hold only whole requests',
  inVirtualTime(async (t) => {
    const sizes: number[] = []
    const client = new ArbiterClient({
      now: () => 0,
      send: (_, { asks }) => void sizes.push(asks.length),
      ...{ onSlow() {}, onTimeout() {} },
    })
    client.follow('a')
    for (let requests = 0; requests <= MAX_LIMIT_ROWS / 2; requests++) {
      const subjects = requests === 0 ? ['acc'] : ['key', 'acc']
      const limited = subjects.map((subject) => ({ subject, limits: perMinute(1) }))
      client.ask(new LimitedRequest(limited, { onDecisions() {}, onReleased() {} }))
    }
    client.flush()
    t.same(sizes, [MAX_LIMIT_ROWS - 1, 2])
  }),
)

t.test('admissions that others are to learn of', async (t) => {
  t.test('are counted by second and by who admitted them, with the age of the last', async (t) => {
    const counter = new AdmissionCounter()
    for (const [subject, by, at] of [
      ['x', 'a', 1_000],
      ['x', 'a', 1_999],
      ['y', 'a', 1_500],
      ['x', 'b', 1_600],
      ['x', 'a', 2_000],
    ] as const)
      counter.add(subject, by, at)
    t.same(counter.take(2_100), [
      {
        by: 'a',
        age_ms: 600,
        counts: [
          ['x', 2],
          ['y', 1],
        ],
      },
      { by: 'b', age_ms: 500, counts: [['x', 1]] },
      { by: 'a', age_ms: 100, counts: [['x', 1]] },
    ])
    t.same(counter.take(2_100), [], 'once')
  })

  t.test('for a minute, and never with an age below nothing', async (t) => {
    const counter = new AdmissionCounter()
    counter.add('x', 'a', 1_000)
    counter.add('x', 'b', 2_000)
    counter.prune(60_999)
    t.same(counter.take(61_000), [{ by: 'b', age_ms: 59_000, counts: [['x', 1]] }])
    counter.add('x', 'a', 2_000)
    t.match(counter.take(1_000), [{ age_ms: 0 }])
  })
})

t.test('long reports come in parts', async (t) => {
  /** What NATS takes by default. */
  const MAX_PAYLOAD_BYTES = 1024 * 1024

  const listCounts = (rows: number): [string, number][] =>
    Array.from({ length: rows }, (_, at) => [newId('acc'), at + 1])

  const makeReport = (held: number, ...admitted: number[]): Omit<LimitReport, 'more'> => ({
    type: 'report',
    from: 'one',
    leader: 'one',
    calls: true,
    leaves: false,
    gone: null,
    heard: 7,
    held: listCounts(held),
    admitted: admitted.map((rows, at) => ({ by: 'one', age_ms: at, counts: listCounts(rows) })),
  })

  const CASES: readonly (readonly [parts: number, ...rows: number[]])[] = [
    [1, 0],
    [1, 3, 2, 2],
    [1, MAX_LIMIT_ROWS],
    [2, MAX_LIMIT_ROWS + 1],
    [2, 2 * MAX_LIMIT_ROWS],
    [2, 10, MAX_LIMIT_ROWS, 1],
    [2, MAX_LIMIT_ROWS, MAX_LIMIT_ROWS, MAX_LIMIT_ROWS],
    [4, 3 * MAX_LIMIT_ROWS + 5, 2 * MAX_LIMIT_ROWS + 1, 12],
  ]

  for (const [parts, held = 0, ...admitted] of CASES)
    t.test(`${held} held, ${admitted.join(' and ') || 'none'} admitted`, async (t) => {
      const report = makeReport(held, ...admitted)
      const letters = splitReport(report).map((part) => Buffer.from(JSON.stringify(part)))
      t.equal(letters.length, parts)
      t.ok(letters.every(({ length }) => length < MAX_PAYLOAD_BYTES))
      const read = letters.map((letter) => decodeMessage(letter) as LimitReport)
      t.same(
        read.map(({ more }) => more),
        letters.map((_, at) => at < letters.length - 1),
      )
      const assembler = new ReportAssembler()
      const heldIn = read.map((part) => assembler.add(part))
      t.ok(heldIn.slice(0, -1).every((slots) => slots === null))
      t.same([...heldIn.at(-1)!], report.held)
      t.same(
        read.flatMap((part) => part.admitted.flatMap(({ counts }) => counts)),
        report.admitted.flatMap(({ counts }) => counts),
      )
      t.same(assembler.add({ ...makeReport(0), more: false }), new Map(), 'the next report is independent')
    })

  t.test('parts that were never finished are forgotten with their sender', async (t) => {
    const part = (from: string, more: boolean) => ({ ...makeReport(2), from, more })
    const parts = new ReportAssembler()
    const countHeld = (from: string) => parts.add(part(from, false))?.size
    for (const from of ['one', 'two', 'three']) t.equal(parts.add(part(from, true)), null)
    parts.forget('one')
    t.same(['one', 'two'].map(countHeld), [2, 4])
    parts.forget()
    t.equal(countHeld('three'), 2)
  })

  t.test('what no process would say is no message', async (t) => {
    for (const text of ['', '{', '[]', '{"type":"report"}', '{"type":"flush","from":1,"token":2}'])
      t.equal(decodeMessage(Buffer.from(text)), null, text)
    const flush = { type: 'flush', from: 'one', token: 3 } as const
    t.same(limitMessage.parse(flush), decodeMessage(Buffer.from(JSON.stringify(flush))))
  })
})
