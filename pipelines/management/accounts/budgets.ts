/** Acts of budgets. */
import type { Budget } from '../../../schemas/accounts/budget.ts'
import { Failure } from '../../../schemas/failure.ts'
import { deleteBudget, listBudgets, putBudget } from '../../../schemas/management/accounts/budgets.ts'
import { printCredits } from '../../../schemas/money.ts'
import type { BudgetState } from '../../../src/postgres/billing/budgets.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { type Context, implement } from '../act.ts'
import { type Caller, isMemberAlone } from '../caller.ts'
import { afterOf, page } from '../page.ts'

/** Share of a budget from which it is nearly spent. */
const NEAR_PERCENT = 80n

const instant = (epochMs: number): string => new Date(epochMs).toISOString()

export const budgetShape = ({
  budget,
  name,
  spent,
  reserved,
  startsAt,
  resetsAt,
  createdAt,
}: BudgetState) => ({
  id: budget.id,
  account_id: budget.accountId,
  scope: budget.scope,
  key_id: budget.scope === 'key' ? budget.subjectId : null,
  member_id: budget.scope === 'member' ? budget.subjectId : null,
  name,
  amount: printCredits(budget.amount),
  period: budget.period,
  timezone: budget.timezone,
  spent: printCredits(spent),
  reserved: printCredits(reserved),
  period_start: instant(startsAt),
  resets_at: instant(resetsAt),
  created_at: createdAt.toISOString(),
})

export const isNearlySpent = ({ budget, spent }: BudgetState): boolean =>
  spent * 100n >= budget.amount * NEAR_PERCENT

/** Checks that the role of the caller decides on budgets of this scope. @throws Failure `permission_denied` */
function assertDecides(
  { roles, installation }: Caller,
  { accountId, scope }: Pick<Budget, 'accountId' | 'scope'>,
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

/** Returns what tells whether a budget covers a key of the caller; owners, admins and billing see all. */
async function seenBy(
  { caller, database }: Context,
  accountId: string,
): Promise<(state: BudgetState) => boolean> {
  if (!isMemberAlone(caller, accountId)) return () => true
  const own = caller.signedIn?.user.accountId
  const keys = own === undefined ? [] : await database.listKeys(accountId, { memberId: own })
  const covered = new Set<string | undefined>([accountId, own, ...keys.map(({ id }) => id)])
  return ({ budget }) => covered.has(budget.subjectId)
}

function subjectOf({
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

export const budgetActs = [
  implement(listBudgets, async (context, input) => {
    const isSeen = await seenBy(context, input.account_id)
    const after = afterOf(input)
    const wanted = ({ budget }: BudgetState) =>
      (input.scope === undefined || budget.scope === input.scope) &&
      (input.key_id === undefined || budget.subjectId === input.key_id) &&
      (after === null || budget.id > after)
    const budgets = await context.database.listBudgets(input.account_id)
    return page(budgets.filter((state) => wanted(state) && isSeen(state)).map(budgetShape), input)
  }),
  implement(putBudget, async ({ caller, write }, input) => {
    const { account_id: accountId, amount, period, timezone } = input
    const wanted = { accountId, amount, period, timezone, ...subjectOf(input) }
    assertDecides(caller, wanted)
    if (amount <= 0n) throw new Failure('invalid_request', 'amount: is more than 0.')
    return budgetShape(await write((database) => database.putBudget(wanted)))
  }),
  implement(
    deleteBudget,
    async ({ caller, database, write }, { id }) => {
      const { budget } = await database.showBudget(id)
      assertDecides(caller, budget)
      return budgetShape(await write((writing) => writing.deleteBudget(id)))
    },
    async (database: Database, { id }) => (await database.showBudget(id)).budget.accountId,
  ),
]
