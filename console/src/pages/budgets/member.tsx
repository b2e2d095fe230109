/** The budgets of a member, in the list of members. */
import { t } from '../../i18n.ts'
import { Dialog, DialogButton } from '../../ui/dialog.tsx'
import { NONE } from '../../ui/text.tsx'
import { type Budget, BudgetBar } from './bar.tsx'
import { BudgetList } from './budgets.tsx'

interface MemberBudgetsProps {
  readonly accountId: string
  readonly memberId: string
  readonly name: string
  readonly budgets: readonly Budget[]
  readonly mayChange: boolean
}

export const MemberBudgets = ({ accountId, memberId, name, budgets, mayChange }: MemberBudgetsProps) => (
  <div className="flex min-w-44 flex-col items-start gap-2">
    {budgets.map((budget) => (
      <BudgetBar key={budget.id} budget={budget} />
    ))}
    {!mayChange && budgets.length === 0 && NONE}
    {mayChange && (
      <DialogButton
        kind="quiet"
        aria-label={t('Budgets of {name}', { name })}
        dialog={(onClose) => (
          <Dialog
            title={t('Budgets of {name}', { name })}
            description={t('These cover all keys of the member in this organization together.')}
            onClose={onClose}
          >
            <BudgetList
              budgets={budgets}
              subject={{ account_id: accountId, member_id: memberId }}
              mayChange
            />
          </Dialog>
        )}
      >
        {t('Budgets')}
      </DialogButton>
    )}
  </div>
)
