/** The choice of a period, in the words of the API. It is in the URL. */
import { t } from '../i18n.ts'
import { Field, SelectField } from '../ui/form.tsx'

export interface Period {
  readonly period?: string
  readonly from?: string
  readonly to?: string
}

interface PeriodFieldsProps {
  readonly value: Period
  /** Whether the whole log may be chosen. */
  readonly hasAll?: boolean
  /** Gets all three; what is not in force is empty. */
  onChange(period: Required<Period>): void
}

export function PeriodFields({ value: { period, from, to }, hasAll = false, onChange }: PeriodFieldsProps) {
  const isRange = from !== undefined || to !== undefined
  const today = new Date().toISOString().slice(0, 10)
  const range = { period: '', from: from?.slice(0, 10) ?? '', to: to?.slice(0, 10) ?? '' }
  return (
    <>
      <SelectField
        label={t('Period')}
        value={isRange ? 'range' : (period ?? '30d')}
        onText={(value) =>
          onChange(
            value === 'range' ? { period: '', from: today, to: today } : { period: value, from: '', to: '' },
          )
        }
        options={[
          ['today', t('Today (UTC)')],
          ['7d', t('7 days')],
          ['30d', t('30 days')],
          ['this_month', t('This month (UTC)')],
          ...(hasAll ? [['all', t('All time')] as const] : []),
          ['range', t('From … to …')],
        ]}
      />
      {isRange && (
        <>
          <Field
            label={t('From')}
            type="date"
            value={range.from}
            onText={(text) => onChange({ ...range, from: text })}
          />
          <Field
            label={t('To')}
            type="date"
            value={range.to}
            onText={(text) => onChange({ ...range, to: text })}
          />
        </>
      )}
    </>
  )
}
