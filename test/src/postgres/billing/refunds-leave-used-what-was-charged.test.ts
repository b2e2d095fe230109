/** Whatever is held and given back, used is the sum of what was charged. See docs/failure-modes.md, "Money", row 16. */
import t from 'tap'
import { Random } from '../../../simulation/random.ts'
import { newAccount, settlement, startDatabase } from '../support.ts'
import { giveBack, hold, move, settle } from '../tasks/support.ts'

const SEED = 16
const STEPS = 120
const CREDIT = 100_000_000_000n

t.test('holds, releases, refunds, charges and calls in any order', async (t) => {
  const { database, sql } = await startDatabase(t)
  const random = new Random(SEED)
  const accountId = await newAccount(database)
  let charged = 0n
  let held = 0n
  const open: Awaited<ReturnType<typeof hold>>[] = []
  const takeOpen = () => open.splice(random.int(0, open.length - 1), 1)[0]!
  const steps: Record<string, () => Promise<unknown>> = {
    async hold() {
      const amount = BigInt(random.int(1, 1_000_000))
      held += amount
      open.push(await hold(database, accountId, amount))
    },
    async charge() {
      const task = takeOpen()
      // As much as was held, or less.
      const cost = random.chance(0.3) ? task.hold : BigInt(random.int(0, Number(task.hold)))
      held -= task.hold
      charged += cost
      await settle(database, task, cost)
    },
    async release() {
      const task = takeOpen()
      held -= task.hold
      await giveBack(database, task, 'refused')
    },
    async refund() {
      const task = takeOpen()
      held -= task.hold
      const { task: running } = await database.tasks.applyTransition(move(task, 'claimed'))
      // A second refund is late.
      await Promise.all(
        [
          giveBack(database, running, 'failed'),
          database.tasks.applyTransition(move(running, 'deadline')),
        ].map((ended) => ended.catch(() => null)),
      )
    },
    async call() {
      const cost = BigInt(random.int(1, 1_000))
      charged += cost
      await database.bookings.book([settlement(accountId, { cost: String(cost) })])
    },
  }
  for (let step = 0; step < STEPS; step++) {
    const names = open.length === 0 ? ['hold', 'call'] : Object.keys(steps)
    const name = random.pick(names)
    await steps[name]!()
    const [wallet] = await database.wallets.read([accountId])
    const expected = { used: charged, held, balance: CREDIT - charged - held }
    if (!t.match(wallet, expected, `step ${step} of seed ${SEED}: ${name}`)) return
  }
  while (open.length > 0) await giveBack(database, takeOpen(), 'refused')
  const [sums] = await sql<[{ rows: string; charges: string }]>`
    SELECT (SELECT coalesce(sum(cost), 0)::text FROM usage_rows WHERE account_id = ${accountId}) AS rows,
      (SELECT coalesce(-sum(amount), 0)::text FROM ledger_entries
       WHERE account_id = ${accountId} AND kind = 'charge') AS charges`
  t.same(sums, { rows: String(charged), charges: String(charged) }, 'used is what rows and ledger say')
  t.match((await database.wallets.read([accountId]))[0], {
    used: charged,
    held: 0n,
    balance: CREDIT - charged,
  })
  t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
})
