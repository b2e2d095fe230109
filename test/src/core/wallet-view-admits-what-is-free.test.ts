import fc from 'fast-check'
import t from 'tap'
import type { WalletTotals } from '../../../schemas/accounts/account.ts'
import { WalletView } from '../../../src/core/pricing/wallet.ts'
import { everyRun } from '../../support/every-run.ts'

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
  view.booked(100n)
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
  view.booked(3n)
  view.update(totals(7n, 6n))
  t.equal(view.balance, 7n)
  t.ok(view.isIdle)
})

t.test('what is booked and was never counted here, as before the key had a cap, adds nothing', async (t) => {
  const view = new WalletView(totals(10n))
  view.booked(3n)
  t.equal(view.balance, 10n)
  t.ok(view.isIdle)
})

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
        view.booked(booked)
        view.update(totals(balance, version))
      }
      const sum = (list: readonly bigint[]) => list.reduce((all, one) => all + one, 0n)
      if (view.inFlight !== sum(open) || view.unbooked !== sum(ended)) return false
      if (view.balance !== balance - sum(ended) || view.balance - view.inFlight < 0n) return false
    }
    return true
  })
})
