/** Sets a budget, or changes one. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { AmountField, DialogForm, Field, SelectField } from '../../ui/form.tsx'
import { type Budget, periodNames } from './bar.tsx'

const ZONES = 'budget-time-zones'

/** What a budget limits: a key, a member, or the account itself. */
export interface Subject {
  readonly account_id: string
  readonly key_id?: string
  readonly member_id?: string
}

interface BudgetDialogProps {
  readonly subject: Subject
  /** Null: a new one. */
  readonly budget: Budget | null
  onClose(): void
}

export function BudgetDialog({ subject, budget, onClose }: BudgetDialogProps) {
  const [amount, setAmount] = useState(budget?.amount ?? '')
  const [period, setPeriod] = useState<Budget['period']>(budget?.period ?? 'month')
  const [timezone, setTimezone] = useState(
    budget?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
  )
  const save = useMutation({
    meta: { done: t('Budget set'), changes: ['/budgets'] },
    mutationFn: () => request('putBudget', { ...subject, amount, period, timezone }),
    onSuccess: onClose,
  })
  return (
    <Dialog
      title={budget === null ? t('Set a budget') : t('Change the budget')}
      description={t(
        'Calls that could pass it are refused until it resets. What was spent in this period counts.',
      )}
      onClose={onClose}
    >
      <DialogForm sends={save} act={t('Save')} onClose={onClose}>
        <AmountField label={t('Amount in credits')} value={amount} onText={setAmount} />
        <SelectField
          label={t('Period')}
          disabled={budget !== null}
          value={period}
          onText={(text) => setPeriod(text as Budget['period'])}
          options={Object.entries(periodNames())}
        />
        <Field
          label={t('Time zone')}
          hint={t('The period begins at midnight there, a week on Monday.')}
          required
          list={ZONES}
          value={timezone}
          onText={setTimezone}
        />
        <datalist id={ZONES}>
          {['UTC', ...Intl.supportedValuesOf('timeZone')].map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
      </DialogForm>
    </Dialog>
  )
}
