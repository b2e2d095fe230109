/** Operations of budgets. */
import type { Budget } from '../../../schemas/accounts/budget.ts'
import { Failure } from '../../../schemas/failure.ts'
import { deleteBudget, listBudgets, putBudget } from '../../../schemas/management/accounts/budgets.ts'
import { printCredits } from '../../../schemas/money.ts'
import { toApiShape } from '../../../src/core/json/snake-case.ts'
import type { BudgetState } from '../../../src/postgres/billing/budgets.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { type Caller, findMember } from '../caller.ts'
import { implement } from '../operation.ts'
import { readPage, toPage } from '../page.ts'
import { printInstant } from '../shapes.ts'

/** Share of a budget from which it is nearly spent. */
const NEAR_PERCENT = 80n

export const budgetShape = ({ budget, startsAt, resetsAt, ...state }: BudgetState) => ({
  ...toApiShape(state),
  ...toApiShape(budget),
  key_id: budget.scope === 'key' ? budget.subjectId : null,
  member_id: budget.scope === 'member' ? budget.subjectId : null,
  amount: printCredits(budget.amount),
  spent: printCredits(state.spent),
  reserved: printCredits(state.reserved),
  period_start: printInstant(startsAt),
  resets_at: printInstant(resetsAt),
})

export const isNearlySpent = ({ budget, spent }: BudgetState): boolean =>
  spent * 100n >= budget.amount * NEAR_PERCENT

/** Checks that the role of the caller decides on budgets of this scope. @throws Failure `permission_denied` */
function assertDecides(
  { roles, installation }: Caller,
  { accountId, scope }: { readonly accountId: string; readonly scope: Budget['scope'] },
) {
  const role = roles.get(accountId)
  if (installation === 'operator' || role === 'owner') return
  const needed = scope === 'account' ? 'billing' : 'admin'
  if (role !== needed)
    throw new Failure(
      'permission_denied',
      `The role ${role} may not change a budget of ${scope === 'account' ? 'the account' : `a ${scope}`}: it takes owner or ${needed}.`,
    )
}

function readSubject({
  account_id,
  key_id,
  member_id,
}: {
  account_id: string
  key_id: string | null
  member_id: string | null
}) {
  if (key_id !== null && member_id !== null)
    throw new Failure(
      'invalid_request',
      'member_id: a budget is of a key or of a member. Leave one of them out.',
    )
  if (key_id !== null) return { scope: 'key', subjectId: key_id } as const
  if (member_id !== null) return { scope: 'member', subjectId: member_id } as const
  return { scope: 'account', subjectId: account_id } as const
}

export const budgetOperations = [
  implement(listBudgets, async ({ caller, database }, input) => {
    const { account_id: accountId, scope = null, key_id: keyId = null } = input
    const found = await database.budgets.list(accountId, {
      scope,
      keyId,
      // Owners, admins and billing see all.
      memberId: findMember(caller, accountId),
      ...readPage(input),
    })
    return toPage(found.map(budgetShape), input)
  }),
  implement(putBudget, async ({ caller, write }, input) => {
    const { account_id: accountId, amount, period, timezone } = input
    const wanted = { accountId, amount, period, timezone, ...readSubject(input) }
    assertDecides(caller, wanted)
    return budgetShape(await write((database) => database.budgets.put(wanted)))
  }),
  implement(
    deleteBudget,
    async (database: Database, { id }) => (await database.budgets.show(id)).budget.accountId,
    async ({ caller, database, write }, { id }) => {
      const { budget } = await database.budgets.show(id)
      assertDecides(caller, budget)
      return budgetShape(await write((writing) => writing.budgets.delete(id)))
    },
  ),
]
