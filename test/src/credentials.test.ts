/** What this process thinks is free of a wallet and of a budget. */
import fc from 'fast-check'
import t from 'tap'
import type { WalletTotals } from '../../schemas/accounts/account.ts'
import { type BudgetPeriods, makeWalletId, parseWalletId } from '../../schemas/accounts/budget.ts'
import { BudgetView } from '../../src/credentials/budget.ts'
import { WalletView } from '../../src/credentials/wallet.ts'
import { everyRun } from '../support/every-run.ts'

t.test('wallet view admits what is free', async (t) => {
  const totals = (balance: bigint, version = 1n): WalletTotals => ({
    accountId: 'acc_1',
    balance,
    held: 0n,
    used: 0n,
    version,
  })

  t.test('free is the balance less what calls in flight may cost, and all of it may be spent', async (t) => {
    const view = new WalletView(totals(10n))
    t.ok(view.admit(4n, true))
    t.notOk(view.admit(7n, true))
    t.ok(view.admit(6n, true))
    t.notOk(view.admit(1n, true))
    t.ok(view.admit(0n, true), 'what costs nothing fits')
    t.equal(view.balance, 10n, 'the balance is what it was')
    t.ok(view.admit(10n, false), 'without the reservation, calls in flight do not count')
  })

  t.test('what is reserved over all processes: a low balance, and a large part of a high one', async (t) => {
    const afterCall = (wallet: WalletTotals, estimate: bigint, exactBelow: bigint | null = null) => {
      const view = new WalletView(wallet)
      t.ok(view.admit(estimate, true))
      return view.needsSharing(exactBelow)
    }
    t.ok(afterCall(totals(100n), 80n), 'below twice the estimate')
    t.ok(afterCall(totals(10_000n), 1n, 9_901n), 'below what the configuration has')
    t.notOk(afterCall(totals(10_000n), 1n, 9_900n))
    t.notOk(afterCall(totals(10_200n), 100n), 'one hundredth of what is beyond the threshold')
    t.ok(afterCall(totals(10_199n), 100n))
    t.ok(afterCall({ ...totals(10_200n), reserved: 1n }, 100n), 'other processes have reserved')

    const view = new WalletView(totals(10_300n))
    t.ok(view.admit(100n, true))
    t.notOk(view.needsSharing(null))
    t.ok(view.admit(2n, true))
    t.ok(view.needsSharing(null), 'calls in flight count')
    view.end(2n, 0n)
    view.end(100n, 100n)
    t.ok(view.admit(2n, true))
    t.ok(view.needsSharing(null), 'and so do charges until they are booked')
    view.applyBooked(100n)
    view.update(totals(10_200n, 2n))
    t.notOk(view.needsSharing(null))
  })

  t.test('charges of an earlier run, and totals that come late', async (t) => {
    const view = new WalletView(totals(10n, 5n), 3n)
    t.equal(view.balance, 7n)
    t.notOk(view.isIdle)
    view.update(totals(100n, 4n))
    view.update(totals(100n, 5n))
    t.equal(view.balance, 7n, 'older or as old: nothing new')
    view.applyBooked(3n)
    view.update(totals(7n, 6n))
    t.equal(view.balance, 7n)
    t.ok(view.isIdle)
  })

  t.test(
    'what is booked and was never counted here, as before the key had a cap, adds nothing',
    async (t) => {
      const view = new WalletView(totals(10n))
      view.applyBooked(3n)
      t.equal(view.balance, 10n)
      t.ok(view.isIdle)
    },
  )

  type Step = { readonly kind: 'admit' | 'end' | 'book' | 'credit'; readonly amount: bigint }
  const step: fc.Arbitrary<Step> = fc.record({
    kind: fc.constantFrom('admit', 'admit', 'end', 'book', 'credit'),
    amount: fc.bigInt({ min: 0n, max: 50n }),
  })

  t.test('while no call costs more than its estimate, nothing is ever overdrawn', async () => {
    everyRun(t, { numRuns: 500 }, [fc.array(step, { maxLength: 200 })], (steps) => {
      let [balance, version] = [100n, 1n]
      const view = new WalletView(totals(balance, version))
      const open: bigint[] = []
      const ended: bigint[] = []
      for (const { kind, amount } of steps) {
        if (kind === 'admit' && view.admit(amount, true)) open.push(amount)
        if (kind === 'credit') {
          balance += amount
          version++
          view.update(totals(balance, version))
        }
        const estimate = kind === 'end' ? open.pop() : undefined
        if (estimate !== undefined) {
          const cost = amount % (estimate + 1n)
          view.end(estimate, cost)
          ended.push(cost)
        }
        const booked = kind === 'book' ? ended.shift() : undefined
        if (booked !== undefined) {
          balance -= booked
          version++
          view.applyBooked(booked)
          view.update(totals(balance, version))
        }
        const sum = (list: readonly bigint[]) => list.reduce((all, one) => all + one, 0n)
        if (view.inFlight !== sum(open) || view.unbooked !== sum(ended)) return false
        if (view.balance !== balance - sum(ended) || view.balance - view.inFlight < 0n) return false
      }
      return true
    })
  })
})

t.test('budget follows periods', async (t) => {
  const DAY_MS = 86_400_000
  const MIDNIGHT = Date.UTC(2026, 10, 24)
  const STARTS = [0, 1, 2].map((day) => MIDNIGHT + day * DAY_MS)

  const known = ({ spent = 0n, amount = 100n, version = 1n, starts = STARTS } = {}): BudgetPeriods => ({
    budget: {
      id: 'bud_a',
      accountId: 'acc_a',
      scope: 'account',
      subjectId: 'acc_a',
      amount,
      period: 'day',
      timezone: 'UTC',
    },
    starts,
    totals: { accountId: `bud_a@${starts[0]}`, balance: amount - spent, held: 0n, used: spent, version },
  })

  t.test(
    'each period has all of the amount, and a call ends in the one that it was admitted in',
    async (t) => {
      const budget = new BudgetView(known({ spent: 90n }))
      const [before, after] = [MIDNIGHT + DAY_MS - 1, MIDNIGHT + DAY_MS]
      t.notOk(budget.at(before).admit(11n, true))
      t.ok(budget.at(before).admit(10n, true))
      t.ok(budget.at(after).admit(100n, true))
      t.equal(budget.resetsAt(before), after)
      budget.at(before).end(10n, 4n)
      t.same([budget.at(before).balance, budget.at(after).balance], [6n, 100n])
      t.equal(budget.at(after).inFlight, 100n)
      budget.at(after).end(100n, 50n)
      budget.applyBooked(20n)
      t.same([budget.at(before).unbooked, budget.at(after).unbooked], [0n, 34n], 'the oldest is booked first')
    },
  )

  t.test('a call ends in its period also where the budget was read again in the next one', async (t) => {
    const budget = new BudgetView(known())
    const late = MIDNIGHT + DAY_MS - 1
    t.ok(budget.at(late).admit(60n, true))
    const starts = STARTS.map((start) => start + DAY_MS)
    budget.renew(known({ starts }))
    t.ok(budget.at(starts[0]!).admit(30n, true))
    budget.at(late).end(60n, 50n)
    t.same([budget.at(late).inFlight, budget.at(late).balance], [0n, 50n])
    t.same([budget.at(starts[0]!).inFlight, budget.at(starts[0]!).balance], [30n, 100n])
    t.equal(
      budget.at(MIDNIGHT - 1),
      budget.at(starts[0]!),
      'one of a period that is not known counts in the first',
    )
  })

  t.test('of several periods that are over, a call ends in its own', async (t) => {
    const budget = new BudgetView(known())
    for (const [index, start] of STARTS.entries()) budget.at(start).admit(BigInt(index + 1), true)
    budget.renew(known({ starts: STARTS.map((start) => start + 2 * DAY_MS) }))
    t.same(
      STARTS.map((start) => budget.at(start + DAY_MS - 1).inFlight),
      [1n, 2n, 3n],
    )
  })

  t.test('what is booked is taken off each charge once, the oldest first', async (t) => {
    const budget = new BudgetView(known())
    for (const [index, cost] of [4n, 34n, 5n].entries()) {
      budget.at(STARTS[index]!).admit(cost, true)
      budget.at(STARTS[index]!).end(cost, cost)
    }
    budget.applyBooked(10n)
    t.same(
      STARTS.map((start) => budget.at(start).unbooked),
      [0n, 28n, 5n],
    )
  })

  t.test('another period or time zone starts counting from zero; another amount does not', async (t) => {
    const renewed = (change: object) => {
      const budget = new BudgetView(known())
      budget.at(MIDNIGHT).admit(10n, true)
      const { budget: before, ...rest } = known({ version: 2n })
      budget.renew({ ...rest, budget: { ...before, ...change } })
      return budget.at(MIDNIGHT).inFlight
    }
    t.equal(renewed({ period: 'month' }), 0n)
    t.equal(renewed({ timezone: 'Asia/Shanghai' }), 0n)
    t.equal(renewed({ amount: 7n }), 10n)
  })

  t.test('the wallet of a period names its budget and its beginning', async (t) => {
    t.same(parseWalletId(makeWalletId('bud_a', MIDNIGHT)), { budgetId: 'bud_a', startsAt: MIDNIGHT })
    t.equal(parseWalletId('acc_a'), null)
  })

  t.test('totals of a period reach it alone, and older ones are ignored', async (t) => {
    const budget = new BudgetView(known({ spent: 90n, version: 7n }))
    const totals = { accountId: '', balance: 70n, held: 0n, used: 30n, version: 1n }
    budget.update(STARTS[1]!, totals)
    budget.update(STARTS[0]!, { ...totals, version: 6n })
    t.same([budget.at(MIDNIGHT).balance, budget.at(STARTS[1]!).balance], [10n, 70n])
  })

  t.test('a period is forgotten when the second after it begins, unless a call of it goes on', async (t) => {
    const spentIn = (goesOn: boolean) => {
      const budget = new BudgetView(known({ spent: 90n }))
      if (goesOn) budget.at(MIDNIGHT).admit(1n, true)
      const balances = STARTS.map((start) => {
        budget.at(start)
        return budget.at(MIDNIGHT).balance
      })
      return balances.map((balance) => 100n - balance)
    }
    t.same(spentIn(false), [90n, 90n, 0n])
    t.same(spentIn(true), [90n, 90n, 90n])
  })

  t.test('totals of a period from before make none be forgotten', async (t) => {
    const budget = new BudgetView(known({ spent: 90n }))
    budget.at(STARTS[1]!)
    budget.update(MIDNIGHT - DAY_MS, { accountId: '', balance: 70n, held: 0n, used: 30n, version: 1n })
    t.equal(budget.at(MIDNIGHT).balance, 10n)
  })

  t.test('a budget that was changed is taken as it is now', async (t) => {
    const budget = new BudgetView(known({ spent: 90n }))
    budget.at(MIDNIGHT).admit(10n, true)
    budget.renew(known({ spent: 90n, amount: 200n, version: 2n }))
    t.same([budget.at(MIDNIGHT).balance, budget.at(MIDNIGHT).inFlight], [110n, 10n], 'calls under way go on')
    t.notOk(budget.isOutOfPeriods(STARTS[1]!))
    t.ok(budget.isOutOfPeriods(STARTS[2]!), 'the last known period has begun')
    t.equal(budget.resetsAt(STARTS[2]!), null)
  })
})
