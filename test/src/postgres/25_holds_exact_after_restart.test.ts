import t from 'tap'
import { newId } from '../../../src/core/ids.ts'
import { newAccount, settlement, startDatabase } from './support.ts'

const { database, engines, sql, openAnother } = await startDatabase(t)
const CREDIT = 100_000_000_000n

const entriesOf = async (ref: string) => {
  const rows = await sql<{ kind: string; amount: bigint }[]>`
    SELECT kind, amount FROM ledger_entries WHERE ref = ${ref} ORDER BY id`
  return Object.fromEntries(rows.map(({ kind, amount }) => [kind, amount]))
}

t.test('a hold leaves the balance at once and comes back less what was charged', async (t) => {
  const accountId = await newAccount(database)
  const ref = newId('vid')
  const placed = await database.placeHold({ ref, accountId, amount: 500n })
  t.match(placed, { outcome: 'placed', wallet: { balance: CREDIT - 500n, held: 500n, used: 0n } })
  const settled = await database.settleHold(ref, 320n)
  t.match(settled, { outcome: 'closed', wallet: { balance: CREDIT - 320n, held: 0n, used: 320n } })
  t.same(await entriesOf(ref), { hold: -500n, release: 500n, charge: -320n })
})

t.test('a hold that comes back whole leaves the used total as it was', async (t) => {
  const accountId = await newAccount(database)
  for (const kind of ['release', 'refund'] as const) {
    const ref = newId('vid')
    await database.placeHold({ ref, accountId, amount: 500n })
    const { wallet } = await database.releaseHold(ref, kind)
    t.match(wallet, { balance: CREDIT, held: 0n, used: 0n })
    t.same(await entriesOf(ref), { hold: -500n, [kind]: 500n })
  }
})

t.test('a second delivery of a step changes nothing', async (t) => {
  const accountId = await newAccount(database)
  const ref = newId('vid')
  const hold = { ref, accountId, amount: 500n }
  const twenty = <T>(step: () => Promise<T>) => Promise.all(Array.from({ length: 20 }, step))
  const outcomes = (results: { outcome: string }[]) => results.map(({ outcome }) => outcome).sort()
  const placed = await twenty(() => database.placeHold(hold))
  t.same(outcomes(placed), [...Array(19).fill('duplicate'), 'placed'])
  const settled = await twenty(() => database.settleHold(ref, 100n))
  t.same(outcomes(settled), ['closed', ...Array(19).fill('duplicate')])
  t.match((await database.readWallets([accountId]))[0], { balance: CREDIT - 100n, held: 0n, used: 100n })
})

t.test('two different endings of one hold: the first stands', async (t) => {
  const accountId = await newAccount(database)
  const ref = newId('vid')
  await database.placeHold({ ref, accountId, amount: 500n })
  await t.rejects(database.placeHold({ ref, accountId, amount: 501n }), { code: 'hold_conflict' })
  await database.settleHold(ref, 100n)
  await t.rejects(database.settleHold(ref, 101n), { code: 'hold_conflict' })
  await t.rejects(database.releaseHold(ref, 'refund'), { code: 'hold_conflict' })
  await t.rejects(database.settleHold(newId('vid'), 1n), { code: 'hold_not_found' })
  t.match((await database.readWallets([accountId]))[0], { used: 100n, held: 0n })
})

t.test('parallel holds never take more than the balance', async (t) => {
  const accountId = await newAccount(database, 1n)
  const amount = CREDIT / 10_000n
  const placed = await Promise.all(
    Array.from({ length: 30 }, () => database.placeHold({ ref: newId('vid'), accountId, amount })),
  )
  t.equal(placed.filter(({ outcome }) => outcome === 'placed').length, 10)
  t.match((await database.readWallets([accountId]))[0], { balance: 0n, held: amount * 10n })
  await t.rejects(database.placeHold({ ref: newId('vid'), accountId, amount: -1n }), {
    code: 'invalid_amount',
  })
  await t.rejects(database.placeHold({ ref: newId('vid'), accountId: newId('acc'), amount }), {
    code: 'account_not_found',
  })
})

t.test('a crash of the engine with open holds gives an exact balance', async (t) => {
  const accountId = await newAccount(database)
  const [open, done] = [newId('vid'), newId('vid')]
  await database.placeHold({ ref: open, accountId, amount: 700n })
  await database.placeHold({ ref: done, accountId, amount: 50n })
  await database.settleHold(done, 20n)
  await database.bookSettlements([settlement(accountId, { cost: '5' })])
  const [before] = await database.readWallets([accountId])
  engines.killEngine('postgres')
  // Fast test clusters do not wait for the disk, but the kernel has what a killed process wrote.
  const again = await retry(openAnother)
  const [after] = await again.readWallets([accountId])
  t.same(after, before)
  t.match(after, { balance: CREDIT - 725n, held: 700n, used: 25n })
  t.match(await again.verifyWallets(), { ok: true, differences: [] })
  const { wallet } = await again.settleHold(open, 1n)
  t.match(wallet, { balance: CREDIT - 26n, held: 0n, used: 26n })
})

/** The killed engine takes a moment to come back. */
async function retry<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (tries === 100) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
