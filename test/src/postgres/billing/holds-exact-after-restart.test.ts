import t from 'tap'
import { newId } from '../../../../src/core/keys/ids.ts'
import { eventually } from '../../../support/eventually.ts'
import { newAccount, settlement, startDatabase } from '../support.ts'
import { giveBack, hold, move, newVideo, settle } from '../tasks/support.ts'

const { database, engines, sql, openAnother } = await startDatabase(t)
const CREDIT = 100_000_000_000n

const entriesOf = async (ref: string) => {
  const rows = await sql<{ kind: string; amount: bigint }[]>`
    SELECT kind, amount FROM ledger_entries WHERE ref = ${ref} ORDER BY id`
  return Object.fromEntries(rows.map(({ kind, amount }) => [kind, amount]))
}

t.test('a hold leaves the balance at once and comes back less what was charged', async (t) => {
  const accountId = await newAccount(database)
  const task = await hold(database, accountId, 500n)
  t.match((await database.wallets.read([accountId]))[0], { balance: CREDIT - 500n, held: 500n, used: 0n })
  t.match(await settle(database, task, 320n), { balance: CREDIT - 320n, held: 0n, used: 320n })
  t.same(await entriesOf(task.id), { hold: -500n, release: 500n, charge: -320n })
})

t.test('a hold that comes back whole leaves the used total as it was', async (t) => {
  const accountId = await newAccount(database)
  for (const [event, kind] of [
    ['refused', 'release'],
    ['failed', 'refund'],
  ] as const) {
    const task = await hold(database, accountId, 500n)
    const started = (await database.tasks.applyTransition(move(task, 'claimed'))).task
    t.match(await giveBack(database, started, event), { balance: CREDIT, held: 0n, used: 0n })
    t.same(await entriesOf(task.id), { hold: -500n, [kind]: 500n })
  }
})

t.test('parallel holds never take more than the balance', async (t) => {
  const accountId = await newAccount(database, 1n)
  const amount = CREDIT / 10_000n
  const made = await Promise.all(
    Array.from({ length: 30 }, () => database.tasks.create(newVideo(accountId, { hold: amount }))),
  )
  t.equal(made.filter(({ outcome }) => outcome === 'created').length, 10)
  t.equal(made.filter(({ outcome }) => outcome === 'insufficient').length, 20)
  t.match((await database.wallets.read([accountId]))[0], { balance: 0n, held: amount * 10n })
  await t.rejects(hold(database, newId('acc'), amount), { code: 'account_not_found' })
})

t.test('a crash of the engine with open holds gives an exact balance', async (t) => {
  const accountId = await newAccount(database)
  const [open, done] = [await hold(database, accountId, 700n), await hold(database, accountId, 50n)]
  await settle(database, done, 20n)
  await database.bookings.book([settlement(accountId, { cost: '5' })])
  const [before] = await database.wallets.read([accountId])
  engines.killEngine('postgres')
  // Fast test clusters do not wait for the disk, but the kernel has what a killed process wrote.
  const again = await eventually('the engine is back', () => openAnother().catch(() => undefined))
  const [after] = await again.wallets.read([accountId])
  t.same(after, before)
  t.match(after, { balance: CREDIT - 725n, held: 700n, used: 25n })
  t.match(await again.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
  t.match(await settle(again, open, 1n), { balance: CREDIT - 26n, held: 0n, used: 26n })
})
