import fc from 'fast-check'
import t from 'tap'
import type { Settlement } from '../../../../schemas/call-log/columns.ts'
import type { Task } from '../../../../src/postgres/tasks/types.ts'
import { newAccount, settlement, startDatabase } from '../support.ts'
import { giveBack, newVideo, settle } from '../tasks/support.ts'

const { database, sql } = await startDatabase(t)

const TOP_UP_MIN = 40_440_000_000n
const RUNS = 12
const MAX_STEPS = 25

const amount = fc.bigInt({ min: 0n, max: 123_456_789_012n })
const which = fc.nat({ max: 2 })
const step = fc.oneof(
  fc.record({ do: fc.constant('topup' as const), which, amount: amount.map((more) => TOP_UP_MIN + more) }),
  fc.record({ do: fc.constant('book' as const), costs: fc.array(fc.tuple(which, amount), { maxLength: 8 }) }),
  fc.record({ do: fc.constant('rebook' as const) }),
  fc.record({ do: fc.constant('hold' as const), which, amount }),
  fc.record({ do: fc.constant('settle' as const), pick: fc.nat(), amount }),
  fc.record({ do: fc.constant('refund' as const), pick: fc.nat() }),
)

/** What the wallets must come to, computed beside the database in whole units. */
interface Expected {
  balance: bigint
  held: bigint
  used: bigint
}

t.test('whatever is done in whatever order, entries sum to the balance to the last unit', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: MAX_STEPS }), async (steps) => {
      const accounts = await Promise.all([0n, 1n, 121n].map((credits) => newAccount(database, credits)))
      const wallets: Expected[] = [0n, 100_000_000n, 12_100_000_000n].map((balance) => ({
        balance,
        held: 0n,
        used: 0n,
      }))
      const open: { task: Task; which: number; amount: bigint }[] = []
      let lastBatch: Settlement[] = []
      for (const move of steps) {
        switch (move.do) {
          case 'topup':
            await database.wallets.topUp(accounts[move.which]!, move.amount)
            wallets[move.which]!.balance += move.amount
            break
          case 'book':
            lastBatch = move.costs.map(([index, cost]) =>
              settlement(accounts[index]!, { cost: String(cost) }),
            )
            await database.bookings.book(lastBatch)
            for (const [index, cost] of move.costs) {
              wallets[index]!.balance -= cost
              wallets[index]!.used += cost
            }
            break
          case 'rebook':
            await database.bookings.book(lastBatch.toReversed())
            break
          case 'hold': {
            const wallet = wallets[move.which]!
            const made = await database.tasks.create(newVideo(accounts[move.which]!, { hold: move.amount }))
            t.equal(made.outcome, move.amount <= wallet.balance ? 'created' : 'insufficient')
            if (made.outcome !== 'created') break
            open.push({ task: made.task, which: move.which, amount: move.amount })
            wallet.balance -= move.amount
            wallet.held += move.amount
            break
          }
          default: {
            const [hold] = open.splice(move.pick % Math.max(open.length, 1), 1)
            if (hold === undefined) break
            const cost = move.do === 'settle' ? move.amount : 0n
            if (move.do === 'settle') await settle(database, hold.task, cost)
            else await giveBack(database, hold.task, 'failed')
            const wallet = wallets[hold.which]!
            wallet.balance += hold.amount - cost
            wallet.held -= hold.amount
            wallet.used += cost
          }
        }
      }
      for (const [index, accountId] of accounts.entries()) {
        const [row] = await sql<Expected[]>`
          SELECT w.balance, w.held, w.used, (
            SELECT coalesce(sum(amount), 0)::bigint FROM ledger_entries AS l WHERE l.account_id = w.account_id
          ) AS entries
          FROM wallets AS w WHERE account_id = ${accountId}`
        t.same({ ...row }, { ...wallets[index], entries: wallets[index]!.balance })
      }
    }),
    { numRuns: RUNS },
  )
  t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
})
