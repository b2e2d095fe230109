/** Adds or changes a budget. */
import { useMutation } from '@tanstack/react-query'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { AmountField, DialogForm, Field, SelectField } from '../../ui/form.tsx'
import { type Budget, namePeriods } from './bar.tsx'

const ZONES = 'budget-time-zones'

/** What a budget limits: a key, a member, or the account itself. */
export interface Subject {
  readonly account_id: string
  readonly key_id?: string
  readonly member_id?: string
}

interface BudgetDialogProps {
  readonly subject: Subject
  /** Null for a new one. */
  readonly budget: Budget | null
  onClose(): void
}

export function BudgetDialog({ subject, budget, onClose }: BudgetDialogProps) {
  const subjectId = subject.key_id ?? subject.member_id ?? subject.account_id
  const form = useFields(`budget of ${subjectId} ${budget?.id ?? ''}`, {
    amount: budget?.amount ?? '',
    period: budget?.period ?? ('month' as Budget['period']),
    timezone: budget?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
  })
  const { field } = form
  const save = useMutation({
    meta: { done: t('Budget set'), changes: ['/budgets'] },
    mutationFn: () => request('putBudget', { ...subject, ...form.values }),
    onSuccess: onClose,
  })
  return (
    <Dialog
      title={budget === null ? t('Set a budget') : t('Change the budget')}
      description={t(
        'Calls that could exceed it are refused until it resets. What has already been spent in this period counts.',
      )}
      onClose={onClose}
    >
      <DialogForm sends={save} fields={form} submit={t('Save')}>
        <AmountField label={t('Amount in credits')} {...field('amount')} />
        <SelectField
          label={t('Period')}
          disabled={budget !== null}
          {...field('period')}
          options={Object.entries(namePeriods())}
        />
        <Field
          label={t('Time zone')}
          hint={t('Periods begin at midnight in this time zone, and weeks on Monday.')}
          required
          list={ZONES}
          {...field('timezone')}
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
