/**
 * The PostgreSQL primary is killed in mid-load and its standby promoted: calls go on, and each is booked once.
 * See docs/cluster.md, "PostgreSQL with a standby".
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { answerOf } from '../../src/cli/support.ts'
import { startEngines } from '../../support/engines.ts'
import { signIn } from '../../support/manage.ts'
import { commandEnv, eventually, until } from '../../support/service.ts'
import { startPostgresPair } from '../../support/standby.ts'
import { say } from '../support.ts'
import { refusals, underLoad } from './outage.ts'
import { seedNote, seeds, TIMEOUT_MS } from './plan.ts'

const ENOUGH = 40
const PAUSE_MS = 100

t.setTimeout(TIMEOUT_MS)
for (const seed of seeds())
  await t.test(seedNote(seed), async (t) => {
    const pair = await startPostgresPair(t)
    const others = await startEngines(t, { only: ['nats', 'clickhouse', 'simulator'], withCallLog: true })
    const engines = Object.create(others, { databaseUrl: { value: pair.bothUrl } })
    const { service, callers, load, more, finish } = await underLoad(t, seed, {
      engines,
      env: { TOLLGATE_ROLES: 'gateway,settler,tasks', DATABASE_READ_URL: pair.bothUrl },
    })
    const body = { model: 'steady', max_tokens: 4, messages: say('hello') }
    // These ask PostgreSQL before each call: a key with a spend cap, and one that no process has seen before.
    const asking = { capped: [] as [at: number, status: number][], unknown: [] as [number, number][] }
    const capped = await service.database.keys.create({
      accountId: callers[0]!.accountId,
      name: 'capped',
      kind: 'employee',
      spendCap: 100_000_000_000_000n,
    })
    const fresh = await Promise.all(
      Array.from({ length: 60 }, () =>
        service.database.keys.create({ accountId: callers[1]!.accountId, name: 'fresh', kind: 'console' }),
      ),
    )
    let isOver = false
    const ask = async (kind: keyof typeof asking, next: () => string | undefined) => {
      for (let key = next(); key !== undefined && !isOver; key = next()) {
        const began = performance.now()
        const response = await service.chat(key, body)
        await response.text()
        asking[kind].push([began, response.status])
        await sleep(PAUSE_MS)
      }
    }
    const askers = [ask('capped', () => capped.raw), ask('unknown', () => fresh.pop()?.raw)]

    const operator = await signIn(service, { role: 'operator' })
    await until('lists are read from the standby', async () => {
      t.match(await operator.send('GET', '/users'), { status: 200 })
      const rows = await pair.run(
        'two',
        (sql) => sql`SELECT FROM pg_stat_activity WHERE application_name ~ ' reading$'`,
      )
      return rows.length > 0
    })

    await more(ENOUGH)
    const killedAt = performance.now()
    await pair.servers.one.kill()
    await sleep(1_000)
    await pair.promote('two')
    const promotedAt = performance.now()
    await more(ENOUGH)
    await until('calls that ask PostgreSQL are served again', () =>
      Object.values(asking).every((seen) => seen.some(([at, status]) => at > promotedAt && status === 200)),
    )
    await more(ENOUGH)
    isOver = true
    await Promise.all(askers)

    t.same(refusals(load.seen), [], 'no call of a known key was refused')
    for (const [kind, seen] of Object.entries(asking)) {
      const failed = seen.filter(([, status]) => status !== 200)
      t.same(
        failed.filter(([, status]) => status !== 503),
        [],
        'others were answered, or are 503',
      )
      const last = Math.max(killedAt, ...failed.map(([at]) => at))
      t.comment(
        `${kind} keys: ${failed.length} of ${seen.length} calls failed; the last began ${Math.round(last - promotedAt)} ms after the promotion, which ended ${Math.round(promotedAt - killedAt)} ms after the kill`,
      )
    }
    t.comment(`known keys: 0 of ${load.seen.length} calls failed`)
    await finish(t)

    t.match(await operator.send('GET', '/users'), { status: 200 }, 'without a standby the primary has them')
    await eventually('every process is connected to the new primary', async () => {
      const rows = await pair.run(
        'two',
        (sql) => sql`SELECT DISTINCT application_name AS name FROM pg_stat_activity`,
      )
      const isConnected = (process: string) =>
        rows.some(({ name }) => String(name).startsWith(`tollgate ${process}`))
      return ['gateway 0', 'settler+tasks'].every(isConnected) || undefined
    })
    const report = await answerOf(['wallet', 'verify'], commandEnv(service))
    t.same(report.differences, [], 'a command finds the new primary, and no difference')
    t.equal((await service.chat(capped.raw, body)).status, 200)
    await service.database.keys.revoke(capped.key.id)
    await until(
      'the gateway is notified by the new primary',
      async () => (await service.chat(capped.raw, body)).status === 401,
    )
  })
