/** Budgets as PostgreSQL gives them inside a JSON value: amounts as text, because JSON numbers lose digits. */
import { type Budget, type BudgetPeriods, makeWalletId } from '../../../schemas/accounts/budget.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'

export type BudgetJson = SnakeCase<Omit<Budget, 'amount'>> & { readonly amount: string }

export const parseBudget = (row: BudgetJson): Budget => ({
  id: row.id,
  accountId: row.account_id,
  scope: row.scope,
  subjectId: row.subject_id,
  amount: BigInt(row.amount),
  period: row.period,
  timezone: row.timezone,
})

/** As `budgets_of` returns them. */
export type BudgetPeriodsJson = BudgetJson & {
  readonly spent: string
  readonly version: string
  readonly starts: readonly number[]
}

export function parseBudgetPeriods(row: BudgetPeriodsJson): BudgetPeriods {
  const budget = parseBudget(row)
  const spent = BigInt(row.spent)
  return {
    budget,
    starts: row.starts,
    totals: {
      accountId: makeWalletId(row.id, row.starts[0]!),
      balance: budget.amount - spent,
      held: 0n,
      used: spent,
      version: BigInt(row.version),
    },
  }
}
