import t from 'tap'
import { parseCredits } from '../../../schemas/money.ts'
import { BudgetView } from '../../../src/core/pricing/budget.ts'
import type { WalletView } from '../../../src/core/pricing/wallet.ts'
import { walletView } from '../../support/known-key.ts'
import { jsonOf } from '../../support/reply-to.ts'
import { balance } from './support.ts'

const read = (view: WalletView, cap: WalletView | null = null) => jsonOf(balance({ view, cap }))

t.test('the wallet in decimal strings, and total is the sum', async (t) => {
  t.strictSame(await read(walletView('100.5', '1.25', '19.57')), {
    object: 'key.balance',
    currency: 'points',
    remaining: '100.5',
    used: '19.57',
    total: '121.32',
    held: '1.25',
  })
})

t.test('an empty wallet and an overdrawn one answer as well', async (t) => {
  t.match(await read(walletView('0')), { remaining: '0', total: '0' })
  t.match(await read(walletView('-0.5', '0', '121.82')), {
    remaining: '-0.5',
    total: '121.32',
  })
})

t.test('a call that ended and is not booked yet has been paid already', async (t) => {
  const view = walletView('10', '0', '5')
  const cost = parseCredits('2')
  view.admit(cost, true)
  t.match(await read(view), { remaining: '10', used: '5' }, 'an estimate is no charge')
  view.end(cost, cost)
  t.match(await read(view), { remaining: '8', used: '7', total: '15' })
})

t.test('budgets show what is spent, what is not booked yet included, and when they reset', async (t) => {
  const [midnight, next] = [Date.UTC(2026, 10, 24), Date.UTC(2026, 10, 25)]
  const budget = new BudgetView({
    budget: {
      id: 'bud_a',
      accountId: 'acc_a',
      scope: 'member',
      subjectId: 'acc_b',
      amount: parseCredits('5'),
      period: 'day',
      timezone: 'UTC',
    },
    starts: [midnight, next],
    totals: {
      ...walletView('3.5', '0', '1.5').totals,
      accountId: `bud_a@${midnight}`,
    },
  })
  const wallet = walletView('100')
  budget.at(midnight).admit(parseCredits('2'), true)
  budget.at(midnight).end(parseCredits('2'), parseCredits('0.25'))
  const shown = { id: 'bud_a', scope: 'member', amount: '5', period: 'day', timezone: 'UTC' }
  const readAt = (at: number) => jsonOf(balance({ view: wallet, cap: null, budgets: [budget] }, at))
  t.match(await readAt(next - 1), {
    remaining: '100',
    budgets: [{ ...shown, spent: '1.75', resets_at: '2026-11-25T00:00:00.000Z' }],
  })
  t.match(await readAt(next), { budgets: [{ ...shown, spent: '0', resets_at: null }] })
})

t.test('a capped key shows its cap and what of it is spent, what is not booked yet counted', async (t) => {
  const cap = walletView('3.5', '0', '1.5')
  cap.admit(parseCredits('2'), true)
  cap.end(parseCredits('2'), parseCredits('0.25'))
  t.match(await read(walletView('100'), cap), {
    remaining: '100',
    spend_cap: '5',
    spent: '1.75',
  })
})
