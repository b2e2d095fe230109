/** Lists and logs come from the standby, and show every act that was answered before; else from the primary. */
import t from 'tap'
import { ONE_CREDIT } from '../../../../schemas/money.ts'
import { openDatabase } from '../../../../src/postgres/database.ts'
import { migrate } from '../../../../src/postgres/migrate.ts'
import { losesCommits } from '../../../../src/postgres/servers/replication.ts'
import { eventually } from '../../../support/eventually.ts'
import { startPostgresPair } from '../../../support/standby.ts'

const ACTS = 30

const pair = await startPostgresPair(t, { isSynchronous: false })
await migrate(pair.url('one'))
const options = { masterKey: Buffer.alloc(32, 7), name: 'test' }
const database = await openDatabase({ ...options, url: pair.bothUrl, readUrl: pair.bothUrl })
t.teardown(() => database.close())
// Another process, which does the acts.
const other = await openDatabase({ ...options, url: pair.url('one') })
t.teardown(() => other.close())

const { account } = await other.accounts.create({ name: 'reader', kind: 'personal', credit: 0n })
let amount = 1000n * ONE_CREDIT
/** Tops up, and returns whether the list of the next moment shows it. */
const showsAct = async (
  writing: Pick<typeof other, 'wallets'> = other,
  reading: Pick<typeof other, 'wallets'> = database,
) => {
  amount += 1n
  await writing.wallets.topUp(account.id, amount)
  const [entry] = await reading.wallets.readLedger(account.id, { before: null, limit: 1 })
  return entry?.amount === amount
}
const countReads = (name: 'one' | 'two') =>
  pair.run(name, async (sql) => {
    const [row] = await sql<[{ reads: number }]>`
      SELECT sum(coalesce(seq_scan, 0) + coalesce(idx_scan, 0))::integer AS reads FROM pg_stat_user_tables
      WHERE starts_with(relname, 'audit_entries')`
    return row.reads
  })
const isReadFrom = (name: 'one' | 'two') =>
  eventually(`the list comes from ${name}`, async () => {
    const before = await countReads(name)
    await database.auditRecord.list({ limit: 1 })
    // Counters are reported a second later at most.
    for (let i = 0; i < 15; i++) {
      if ((await countReads(name)) > before) return true
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    return undefined
  })

t.test('commits do not wait for this standby, which an operator is warned of', async (t) => {
  t.ok(await losesCommits(pair.bothUrl))
  t.notOk(await losesCommits(pair.url('one')), 'of one host nothing is known')
})

t.test('the standby has them', async (t) => {
  t.ok(await isReadFrom('two'))
})

t.test('a list right after an act of another process shows it', async (t) => {
  for (let i = 0; i < ACTS; i++) t.ok(await showsAct())
})

t.test('of a standby that is behind the primary takes its place, until it has caught up', async (t) => {
  await pair.run('two', (sql) => sql`SELECT pg_wal_replay_pause()`)
  for (let i = 0; i < 3; i++) t.ok(await showsAct())
  t.ok(await isReadFrom('one'))
  await pair.run('two', (sql) => sql`SELECT pg_wal_replay_resume()`)
  t.ok(await isReadFrom('two'))
})

t.test('within a transaction lists are those of the transaction', async (t) => {
  const found = await database.transactAs('test', (inside) => showsAct(inside, inside))
  t.ok(found)
})

t.test('a refusal of a list is passed on', async (t) => {
  await t.rejects(
    database.wallets.readLedger(account.id, { before: null, limit: -1 }),
    /LIMIT must not be negative/,
  )
})

t.test('of a standby that is away the primary takes its place', async (t) => {
  await pair.servers.two.kill()
  for (let i = 0; i < 3; i++) t.ok(await showsAct())
})
