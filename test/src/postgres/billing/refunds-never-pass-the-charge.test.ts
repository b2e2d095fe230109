/** Whatever refunds of calls and tasks arrive, at once and again, over processes: one counts, and the books agree. */
import fc from 'fast-check'
import t from 'tap'
import { newAccount, settlement, startDatabase } from '../support.ts'
import { hold, settle } from '../tasks/support.ts'

const { database, openAnother } = await startDatabase(t)
const processes = [database, await openAnother()]

const RUNS = 15
const CREDIT = 1000n
const ONE_CREDIT = 100_000_000n
const HOLD = 1_000n
/** Of a task that is held at `HOLD`: a part of it, or all. */
const charge = fc.bigInt({ min: 1n, max: HOLD })
const asked = fc.record({
  process: fc.nat({ max: 1 }),
  /** Null: all of the charge. */
  amount: fc.option(fc.bigInt({ min: -1n, max: HOLD + 1n })),
})
const charged = fc.record({
  isTask: fc.boolean(),
  charge,
  /** Those of one list are sent at once, the lists one after another. */
  refunds: fc.array(fc.array(asked, { minLength: 1, maxLength: 4 }), { maxLength: 3 }),
})

const codeOf = (error: unknown): string => (error as { code?: string }).code ?? String(error)

t.test('at most one refund of each, never above its charge', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(charged, { minLength: 1, maxLength: 5 }), async (works) => {
      const account = await newAccount(database, CREDIT)
      let balance = CREDIT * ONE_CREDIT
      let used = 0n
      for (const { isTask, charge: cost, refunds } of works) {
        const call = settlement(account, { cost: String(cost) })
        const task = isTask ? await hold(database, account, HOLD) : null
        const ref = task?.id ?? call.request_id
        const refund = (amount: bigint | null, process = 0) =>
          processes[process]!.wallets.refund(account, ref, { amount, reason: 'late' })
        t.equal(await refund(null).catch(codeOf), 'charge_not_found', 'nothing was charged yet')
        if (task === null) await database.bookings.book([call])
        else await settle(database, task, cost)
        balance -= cost
        used += cost
        let booked: bigint | null = null
        for (const batch of refunds) {
          const outcomes = await Promise.all(
            batch.map(({ amount, process }) => refund(amount, process).catch(codeOf)),
          )
          const wanted = batch.map(({ amount }) => amount ?? cost)
          const isValid = (amount: bigint) => amount > 0n && amount <= cost
          const done = outcomes.flatMap((outcome) => (typeof outcome === 'string' ? [] : [outcome]))
          const before = booked
          booked ??= done[0]?.entry.amount ?? null
          t.equal(
            done.filter(({ isRepeated }) => !isRepeated).length,
            before === null && booked !== null ? 1 : 0,
          )
          t.equal(booked === null, before === null && !wanted.some(isValid), 'a valid one is booked')
          for (const [index, outcome] of outcomes.entries())
            if (typeof outcome !== 'string') t.equal(wanted[index], booked)
            else if (before !== null) t.equal(outcome, 'refunded_already')
            else t.ok(['invalid_amount', 'refunded_already'].includes(outcome), outcome)
        }
        balance += booked ?? 0n
        t.equal((await database.wallets.findRefund(account, ref))?.amount ?? null, booked)
        // What was settled comes again.
        if (task === null) await database.bookings.book([call])
      }
      const { wallet } = await database.accounts.show(account)
      t.match(wallet, { balance, used, held: 0n })
      t.same((await database.audits.verifyWallets()).differences, [])
    }),
    { numRuns: RUNS, seed: 22, endOnFailure: true },
  )
})
