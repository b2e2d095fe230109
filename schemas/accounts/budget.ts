/** Budgets: what a key, a member or an account may spend in a period. See docs/api-rules.md, "Budgets". */
import { z } from 'zod'
import type { Credits } from '../money.ts'
import type { WalletTotals } from './account.ts'

const BUDGET_SCOPES = ['key', 'member', 'account'] as const
export const budgetScope = z.enum(BUDGET_SCOPES)
export type BudgetScope = z.infer<typeof budgetScope>

export const BUDGET_PERIODS = ['day', 'week', 'month'] as const
export const budgetPeriod = z.enum(BUDGET_PERIODS)
export type BudgetPeriod = z.infer<typeof budgetPeriod>

export interface Budget {
  /** `bud_` + ULID. */
  readonly id: string
  /** The account or organization that pays. */
  readonly accountId: string
  readonly scope: BudgetScope
  /** The key, the account of the member, or the account that pays. */
  readonly subjectId: string
  readonly amount: Credits
  readonly period: BudgetPeriod
  /** IANA name of the time zone in which periods begin at midnight. */
  readonly timezone: string
}

/** A budget as a process reads it. */
export interface BudgetPeriods {
  readonly budget: Budget
  /** When the current period and the next ones begin, epoch milliseconds. */
  readonly starts: readonly number[]
  /** The current period as a wallet: what may still be spent is the balance. */
  readonly totals: WalletTotals
}

/** Names a period of a budget among wallets. */
export const makeWalletId = (budgetId: string, startsAt: number): string => `${budgetId}@${startsAt}`

/** Returns the budget and the beginning of the period that a wallet's id names; null for another wallet. */
export function parseWalletId(id: string): { readonly budgetId: string; readonly startsAt: number } | null {
  const at = id.indexOf('@')
  return at === -1 ? null : { budgetId: id.slice(0, at), startsAt: Number(id.slice(at + 1)) }
}

/** The limit that leaves too little for a call or a task. */
export type SpendRefusal =
  | { readonly by: 'spend_cap' }
  | { readonly by: 'budget'; readonly budget: Budget; readonly resetsAt: number }
