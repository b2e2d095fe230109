/**
 * A gateway is killed in mid-load and its disk is gone. A copy of its journal is imported; the import is killed halfway
 * and repeated: each acknowledged call is booked once, at its cost. See docs/cluster.md, "A machine that never comes back".
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { SETTLEMENT_SUBJECT } from '../../../schemas/events/event.ts'
import { openNats } from '../../../src/nats/nats.ts'
import { connect } from '../../../src/postgres/connection.ts'
import { Random } from '../../simulation/random.ts'
import { connectTo, untilCopied, verifyWallets } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { commandEnv, startService, until } from '../../support/service.ts'
import type { Caller } from '../chaos/audit.ts'
import { keepCalling } from '../chaos/load.ts'
import { CHAOS_CONFIG, seedNote, seeds } from '../chaos/plan.ts'

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
const SHAPE = { calls: 5_000, keys: 4, rampMs: 20, streamMs: [10, 200], atOnce: 16 } as const
const ONLY_ON_DISK = 120

const [seed = 0] = seeds()
t.comment(seedNote(seed))

await t.test('a lost node', async (t) => {
  const engines = await startEngines(t)
  const lost = await startService(t, { engines, config: CHAOS_CONFIG, env: { TOLLGATE_ROLES: 'gateway' } })
  const left = await startService(t, { engines, config: CHAOS_CONFIG })
  const sql = connectTo(t, engines.databaseUrl)
  const callers: Caller[] = []
  for (let at = 0; at < SHAPE.keys; at++) callers.push(await left.newKey('1000000'))
  const load = keepCalling(
    lost,
    callers.map(({ key }) => key),
    new Random(seed),
    SHAPE,
  )
  t.teardown(() => load.stop())
  const acknowledged = () => load.seen.filter(({ status, end }) => status === 200 && end === 'complete')
  const untilMore = async (count: number) => {
    const before = acknowledged().length
    await until(`${count} more calls`, () => acknowledged().length >= before + count)
  }
  await untilMore(20)
  await engines.stopEngine('nats')
  await untilMore(ONLY_ON_DISK)
  await lost.kill()
  load.stop()
  await load.done
  const directory = join(lost.dataDir, 'journal', 'gateway-0')
  const copy = join(left.dataDir, 'copy')
  cpSync(directory, copy, { recursive: true })
  rmSync(lost.dataDir, { recursive: true })
  await engines.startEngine('nats')
  await until('the service is ready again', async () => (await fetch(`${left.baseUrl}/readyz`)).ok)
  // An import is refused while a settler has settlements of the journal to book.
  const nats = openNats({ url: engines.natsUrl, name: 'test', log: { info() {}, warn() {}, error() {} } })
  t.teardown(() => nats.close())
  await until('what JetStream has is booked', async () => {
    const left = await nats.countSettlements(`${SETTLEMENT_SUBJECT}.>`).catch(() => null)
    return left === 0
  })
  await sql`UPDATE journals SET seen_at = now() - interval '6 minutes' WHERE directory = ${directory}`
  const ids = acknowledged().map(({ requestId }) => requestId!)
  const countBooked = async () => {
    const [row] = await sql`SELECT count(*) AS booked FROM usage_rows WHERE request_id = ANY (${ids})`
    return Number(row?.booked)
  }
  const booked = await countBooked()
  t.ok(ids.length - booked >= ONLY_ON_DISK / 2, `${ids.length - booked} calls are on the disk alone`)

  const start = () => {
    const env = { ...process.env, ...commandEnv(left) }
    const words = [MAIN, 'journal', 'import', copy, '--json']
    const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    t.teardown(() => child.kill('SIGKILL'))
    return { child, end: endOf(child) }
  }
  const endOf = async (child: ChildProcessByStdio<null, Readable, Readable>) => {
    const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return { code: child.exitCode, answer: output === '' ? null : JSON.parse(output), errors }
  }

  // A lock on one wallet stops the import at the first call of that account.
  const holder = connect(engines.databaseUrl, { max: 1, name: 'holder' })
  t.teardown(() => holder.end())
  await holder.begin(async (holding) => {
    // The server ends an idle transaction after a minute; a command may take longer to start on a machine under load.
    await holding`SET LOCAL idle_in_transaction_session_timeout = 0`
    await holding`SELECT FROM wallets WHERE account_id = ${callers[0]!.accountId} FOR UPDATE`
    const { child, end } = start()
    const waits = until('the import waits for the wallet', async () => {
      const rows = await sql`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'`
      return rows.length > 0
    })
    t.equal(await Promise.race([waits, end]), undefined, 'the import has not ended before')
    child.kill('SIGKILL')
    await end
  })
  const halfway = await countBooked()
  t.ok(halfway < ids.length, `the import was killed with ${halfway - booked} calls booked`)

  const answers = [await start().end, await start().end]
  t.match(answers, [
    { code: 0, answer: { refused_calls: 0, damaged_bytes: 0 } },
    { code: 0, answer: { booked_calls: 0, refused_calls: 0 } },
  ])
  t.equal(await countBooked(), ids.length, 'every acknowledged call has one row')
  const rows = await sql<{ status: string }[]>`
    SELECT DISTINCT status FROM usage_rows WHERE request_id = ANY (${ids}) AND status = 'interrupted'`
  t.same(rows, [], 'none of them as interrupted')
  await untilCopied(sql)
  t.same((await verifyWallets(left)).differences, [])
})
