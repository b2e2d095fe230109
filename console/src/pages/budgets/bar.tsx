/** A budget as a bar: how much of it is spent, and when it resets. */
import type { AnswerOf } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Money, Time } from '../../ui/text.tsx'

export type Budget = AnswerOf<'listBudgets'>['data'][number]

const NEAR_PERCENT = 80
const ALL_PERCENT = 100

export const namePeriods = () => ({ day: t('Daily'), week: t('Weekly'), month: t('Monthly') })

const computeShare = ({ spent, amount }: Budget): number =>
  Math.min(ALL_PERCENT, (Number(spent) / Number(amount)) * ALL_PERCENT || 0)

export function BudgetBar({ budget }: { readonly budget: Budget }) {
  const { spent, amount, period, timezone, resets_at } = budget
  const share = computeShare(budget)
  return (
    <div className="flex min-w-56 flex-1 flex-col gap-1">
      <span className="flex flex-wrap items-baseline justify-between gap-x-3">
        <span className="font-medium">{namePeriods()[period]}</span>
        <span>
          <Money amount={spent} /> / <Money amount={amount} />
        </span>
      </span>
      <meter
        className="h-2 w-full"
        min={0}
        max={ALL_PERCENT}
        low={NEAR_PERCENT}
        high={NEAR_PERCENT}
        optimum={0}
        value={share}
        aria-label={t('{percent}% of the budget', { percent: Math.round(share) })}
      />
      <span className="text-quiet text-xs" title={timezone}>
        {t('Resets')} <Time at={resets_at} /> ({timezone})
      </span>
    </div>
  )
}
