/** Budgets with their names: those that are nearly spent, or those that cover a member. */
import { t } from '../../i18n.ts'
import { Panel } from '../../ui/states.tsx'
import { type Budget, BudgetBar } from './bar.tsx'

const scopeNames = () => ({ key: t('Key'), member: t('Member'), account: t('Account') })

export function NamedBudgets({
  title,
  budgets,
}: {
  readonly title: string
  readonly budgets: readonly Budget[]
}) {
  if (budgets.length === 0) return null
  return (
    <Panel title={title}>
      <ul className="divide-y divide-line">
        {budgets.map((budget) => (
          <li key={budget.id} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3">
            <span className="min-w-40">
              <span className="block font-medium">{budget.name}</span>
              <span className="text-quiet text-xs">{scopeNames()[budget.scope]}</span>
            </span>
            <BudgetBar budget={budget} />
          </li>
        ))}
      </ul>
    </Panel>
  )
}
