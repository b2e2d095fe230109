/** The budgets of a member, in the list of members. */
import { useState } from 'react'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { type Budget, BudgetBar } from './bar.tsx'
import { BudgetList } from './budgets.tsx'

interface MemberBudgetsProps {
  readonly accountId: string
  readonly memberId: string
  readonly name: string
  readonly budgets: readonly Budget[]
  readonly mayChange: boolean
}

export function MemberBudgets({ accountId, memberId, name, budgets, mayChange }: MemberBudgetsProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <div className="flex min-w-44 flex-col items-start gap-2">
      {budgets.map((budget) => (
        <BudgetBar key={budget.id} budget={budget} />
      ))}
      {mayChange && (
        <Button kind="quiet" aria-label={t('Budgets of {name}', { name })} onClick={() => setOpen(true)}>
          {t('Budgets')}
        </Button>
      )}
      {!mayChange && budgets.length === 0 && <span className="text-quiet">–</span>}
      <Dialog
        title={t('Budgets of {name}', { name })}
        description={t('All keys of the member in this organization count together.')}
        isOpen={isOpen}
        onClose={() => setOpen(false)}
      >
        <BudgetList
          budgets={budgets}
          subject={{ account_id: accountId, member_id: memberId }}
          mayChange={mayChange}
        />
      </Dialog>
    </div>
  )
}
