import t from 'tap'
import type { BudgetPeriods } from '../../../schemas/accounts/budget.ts'
import { BudgetView } from '../../../src/core/pricing/budget.ts'

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

t.test('each period has all of the amount, and a call ends in the one that it was admitted in', async (t) => {
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
  budget.booked(20n)
  t.same([budget.at(before).unbooked, budget.at(after).unbooked], [0n, 34n], 'the oldest is booked first')
})

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

t.test('totals of a period reach it alone, and older ones are ignored', async (t) => {
  const budget = new BudgetView(known({ spent: 90n, version: 7n }))
  const totals = { accountId: '', balance: 70n, held: 0n, used: 30n, version: 1n }
  budget.update(STARTS[1]!, totals)
  budget.update(STARTS[0]!, { ...totals, version: 6n })
  t.same([budget.at(MIDNIGHT).balance, budget.at(STARTS[1]!).balance], [10n, 70n])
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
