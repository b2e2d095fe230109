/**
 * Real gateway processes of two services on the same engines, killed and stopped.
 * See docs/failure-modes.md, "Money", row 26 and "Streams", row 42.
 */
import { connect } from '@nats-io/transport-node'
import t, { type Test } from 'tap'
import { LIMITS_SUBJECT, type LimitReport } from '../../../schemas/accounts/limits.ts'
import { Random } from '../../simulation/random.ts'
import { startEngines } from '../../support/engines.ts'
import { eventually, startService, type TestService, until } from '../../support/service.ts'
import { childrenOf, isRunning } from '../chaos/processes.ts'
import { callConfig, say } from '../support.ts'

const MESSAGES = say('hi')
const config = callConfig({ fast: { simulate: 'tokens=1' }, slow: { simulate: 'tokens=5000,tps=20' } })

/** Hears what the gateway processes tell each other every second: what they admitted, and whom they follow. */
async function hearReports(t: Test, url: string) {
  const { host, username: user, password: pass } = new URL(url)
  const connection = await connect({ servers: host, user, pass })
  t.teardown(() => connection.close())
  const reports: LimitReport[] = []
  connection.subscribe(`${LIMITS_SUBJECT}.all`, {
    callback: (_, { data }) => void reports.push(JSON.parse(Buffer.from(data).toString())),
  })
  /** Returns the leader once so many processes have reported from now on, and follow one that is not the former. */
  return (processes: number, former: string | null = null): Promise<string> => {
    const heard = reports.length
    return eventually(`${processes} processes have reported`, () => {
      // The first report of each may have been on its way.
      const repeated = reports.slice(heard).filter(({ from }, at, all) => {
        return all.slice(0, at).some((earlier) => earlier.from === from)
      })
      const leaders = new Map(repeated.map(({ from, leader }) => [from, leader]))
      const [leader = null, ...others] = new Set(leaders.values())
      const isSo = leaders.size === processes && others.length === 0 && leader !== former
      return (isSo && leader) || undefined
    })
  }
}

t.test('one account, several gateways', async (t) => {
  const engines = await startEngines(t)
  const options = { engines, config }
  // The first to come decides for all.
  const leading = await startService(t, { ...options, env: { TOLLGATE_WORKERS: '2' } })
  const other = await startService(t, options)
  const both = [leading, other]
  const reported = await hearReports(t, engines.natsUrl)

  const newKey = async (limits: { requestsPerMinute?: number; concurrency?: number }) => {
    const made = await leading.newKey('100000000')
    await leading.database.accounts.setLimits(made.accountId, limits)
    return made.key
  }
  const call = async (by: TestService, key: string): Promise<number> => {
    const response = await by.chat(key, { model: 'fast', messages: MESSAGES })
    await response.arrayBuffer()
    return response.status
  }
  const callMany = async (by: readonly TestService[], times: number, key: string) => {
    const statuses = await Promise.all(
      Array.from({ length: times }, (_, at) => call(by[at % by.length]!, key)),
    )
    const accepted = statuses.filter((status) => status === 200).length
    const refused = statuses.filter((status) => status === 429).length
    if (accepted + refused < times) throw new Error(`neither accepted nor limited: ${statuses}`)
    return accepted
  }
  /** Opens streams until one is refused. */
  const openStreams = async (by: readonly TestService[], times: number, key: string) => {
    const asked = Array.from({ length: times }, (_, at) =>
      by[at % by.length]!.chat(key, { model: 'slow', messages: MESSAGES, stream: true }),
    )
    const responses = await Promise.all(asked)
    const open = responses.filter(({ status }) => status === 200)
    for (const response of responses) if (response.status !== 200) await response.arrayBuffer()
    return { count: open.length, leave: () => Promise.all(open.map(({ body }) => body!.cancel())) }
  }

  await t.test('of 40 requests at once exactly 10 are accepted, in each dimension', async (t) => {
    t.equal(await callMany(both, 40, await newKey({ requestsPerMinute: 10 })), 10)
    const key = await newKey({ concurrency: 10 })
    const streams = await openStreams(both, 40, key)
    t.equal(streams.count, 10)
    await streams.leave()
    await until('all slots are back', async () => {
      const again = await openStreams(both, 10, key)
      await again.leave()
      return again.count === 10
    })
  })

  await t.test('one call after another, wherever it goes, is never one too many', async (t) => {
    const key = await newKey({ concurrency: 1 })
    const statuses: number[] = []
    for (let at = 0; at < 60; at++) statuses.push(await call(both[at % 2]!, key))
    t.same(new Set(statuses), new Set([200]))
  })

  await t.test('clients that leave at any moment leave no slot behind', async (t) => {
    const LIMIT = 20
    const ABORTS = 400
    const key = await newKey({ concurrency: LIMIT })
    const random = new Random(42)
    let rest = ABORTS
    const client = async (by: TestService) => {
      while (rest-- > 0) {
        const leaving = new AbortController()
        const timer = setTimeout(() => leaving.abort(), random.int(0, 12))
        const stream = random.chance(0.5)
        await by
          .chat(key, { model: 'slow', messages: MESSAGES, stream }, { signal: leaving.signal })
          .then((response) => response.arrayBuffer())
          .catch(() => undefined)
        clearTimeout(timer)
      }
    }
    await Promise.all(Array.from({ length: LIMIT }, (_, at) => client(both[at % 2]!)))
    const counts: number[] = []
    await until('every slot can be had again', async () => {
      const streams = await openStreams(both, LIMIT + 5, key)
      await streams.leave()
      counts.push(streams.count)
      return streams.count >= LIMIT
    })
    t.same(
      counts.filter((count) => count > LIMIT),
      [],
      'and no more than there are',
    )
  })

  await t.test('killed gateways leave no slot behind, and the minute goes on without them', async (t) => {
    const perMinute = await newKey({ requestsPerMinute: 10 })
    t.equal(await callMany(both, 6, perMinute), 6)
    const slots = await newKey({ concurrency: 4 })
    t.equal((await openStreams([leading], 3, slots)).count, 3)
    await reported(3)
    const gateways = childrenOf(leading.pid(), 'gateway')
    t.equal(gateways.length, 2)
    for (const pid of gateways) process.kill(pid, 'SIGKILL')
    await until('they are gone', () => !gateways.some(isRunning))
    t.equal(await callMany([other], 20, perMinute), 4)
    const streams = await openStreams([other], 10, slots)
    t.equal(streams.count, 4)
    await until('there are two again', () => childrenOf(leading.pid(), 'gateway').length === 2)
    await until(
      'which take calls',
      async () => (await call(leading, await newKey({ concurrency: 1 })).catch(() => 0)) === 200,
    )
    t.equal(await callMany(both, 20, perMinute), 0)
    t.equal(await callMany([leading], 5, slots), 0)
    await streams.leave()
  })

  await t.test('a leader that is stopped is replaced, and gives way when it goes on', async (t) => {
    const perMinute = await newKey({ requestsPerMinute: 10 })
    t.equal(await callMany(both, 4, perMinute), 4)
    const leader = await reported(3)
    const [stopped = 0] = childrenOf(other.pid(), 'gateway')
    process.kill(stopped, 'SIGSTOP')
    try {
      // Requests that wait for its answer are served within a second all the same.
      t.equal(await callMany([leading], 4, perMinute), 4)
      await reported(2, leader)
      t.equal(await callMany([leading], 1, perMinute), 1)
    } finally {
      process.kill(stopped, 'SIGCONT')
    }
    await reported(3)
    t.equal(await callMany(both, 20, perMinute), 1)
  })
})
