/** The budgets of a key, a member or an account: bars, and what changes them. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { request } from '../../api/client.ts'
import { wholeListQuery } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmButton } from '../../ui/dialog.tsx'
import { EmptyState, Panel, QueryState } from '../../ui/states.tsx'
import { type Budget, BudgetBar, periodNames } from './bar.tsx'
import { BudgetDialog, type Subject } from './dialog.tsx'

/** Reads the budgets of an account of one scope, or those of one key. */
export const useBudgets = (
  accountId: string,
  of: { readonly scope: Budget['scope']; readonly key_id?: string },
) => useQuery(wholeListQuery('listBudgets', { account_id: accountId, ...of }))

interface BudgetListProps {
  readonly budgets: readonly Budget[]
  readonly subject: Subject
  readonly mayChange: boolean
}

/** Bars with buttons, and the button that adds one. */
export function BudgetList({ budgets, subject, mayChange }: BudgetListProps) {
  const [editing, setEditing] = useState<Budget | 'new' | null>(null)
  return (
    <>
      {budgets.length === 0 && <EmptyState title={t('No budget limits what is spent in a period.')} />}
      {budgets.length > 0 && (
        <ul className="divide-y divide-line">
          {budgets.map((budget) => (
            <li key={budget.id} className="flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3">
              <BudgetBar budget={budget} />
              {mayChange && (
                <span className="flex gap-1">
                  <Button kind="quiet" onClick={() => setEditing(budget)}>
                    {t('Change')}
                  </Button>
                  <ConfirmButton
                    title={t('Delete a budget of {name}', { name: budget.name })}
                    description={t('{period}: nothing limits the spend of this period any more.', {
                      period: periodNames()[budget.period],
                    })}
                    name={budget.name}
                    act={t('Delete')}
                    meta={{ done: t('Budget deleted'), changes: ['/budgets'] }}
                    onConfirm={() => request('deleteBudget', { id: budget.id })}
                  />
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
      {mayChange && (
        <div className="border-line border-t p-3 text-right">
          <Button onClick={() => setEditing('new')}>{t('Set a budget')}</Button>
        </div>
      )}
      {editing !== null && (
        <BudgetDialog
          subject={subject}
          budget={editing === 'new' ? null : editing}
          onClose={() => setEditing(null)}
        />
      )}
    </>
  )
}

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
