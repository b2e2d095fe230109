/** The budgets of a key, a member or an account. */
import { Gauge } from 'lucide-react'
import { readTyped } from '../../../../src/core/confirmation.ts'
import { request } from '../../api/client.ts'
import { useWholeList } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Action, DialogButton } from '../../ui/dialog.tsx'
import { EmptyState, Panel, QueryState } from '../../ui/states.tsx'
import { type Budget, BudgetBar, namePeriods } from './bar.tsx'
import { BudgetDialog, type Subject } from './dialog.tsx'

/** Reads the budgets of one scope of an account, or those of one key. */
export const useBudgets = (
  accountId: string,
  of: { readonly scope: Budget['scope']; readonly key_id?: string },
) => useWholeList('listBudgets', { account_id: accountId, ...of })

interface BudgetListProps {
  readonly budgets: readonly Budget[]
  readonly subject: Subject
  readonly mayChange: boolean
}

function BudgetActions({ budget, subject }: { readonly budget: Budget; readonly subject: Subject }) {
  const { id, name, period } = budget
  return (
    <span className="flex gap-1">
      <DialogButton
        kind="quiet"
        dialog={(onClose) => <BudgetDialog subject={subject} budget={budget} onClose={onClose} />}
      >
        {t('Change')}
      </DialogButton>
      <Action
        kind="quiet"
        confirm={{
          title: t('Delete a budget of {name}', { name }),
          description: t('{period}: this budget no longer limits what is spent.', {
            period: namePeriods()[period],
          }),
          name: readTyped('deleteBudget', { name }),
          submit: t('Delete'),
        }}
        done={t('Budget deleted')}
        changes={['/budgets']}
        run={() => request('deleteBudget', { id })}
      >
        {t('Delete')}
      </Action>
    </span>
  )
}

/** Bars with buttons that change or remove them, and a button that adds one. */
export const BudgetList = ({ budgets, subject, mayChange }: BudgetListProps) => (
  <>
    {budgets.length === 0 && (
      <EmptyState icon={Gauge} title={t('No budget limits spending here.')} docs="organizations.md" />
    )}
    <ul className="divide-y divide-line">
      {budgets.map((budget) => (
        <li key={budget.id} className="flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3">
          <BudgetBar budget={budget} />
          {mayChange && <BudgetActions budget={budget} subject={subject} />}
        </li>
      ))}
    </ul>
    {mayChange && (
      <div className="border-line border-t p-3 text-right">
        <DialogButton
          dialog={(onClose) => <BudgetDialog subject={subject} budget={null} onClose={onClose} />}
        >
          {t('Set a budget')}
        </DialogButton>
      </div>
    )}
  </>
)

interface BudgetsProps extends Omit<BudgetListProps, 'budgets'> {
  readonly title: string
}

/** The budgets of a key or of an account, in a panel. */
export function Budgets({ title, subject, mayChange }: BudgetsProps) {
  const { account_id, key_id } = subject
  const list = useBudgets(account_id, key_id === undefined ? { scope: 'account' } : { scope: 'key', key_id })
  return (
    <Panel title={title}>
      <QueryState query={list} rows={2} />
      {list.data && !list.error && <BudgetList budgets={list.data} subject={subject} mayChange={mayChange} />}
    </Panel>
  )
}
