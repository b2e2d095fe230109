/** The progress of a job in the background. */
import { printNumber } from '../format.ts'
import { t } from '../i18n.ts'

export function JobProgress({ done, total }: { readonly done: number; readonly total: number }) {
  return (
    <span className="flex min-w-60 flex-1 items-center gap-4">
      <progress
        className="h-2 min-w-40 flex-1 accent-accent"
        aria-label={t('Progress')}
        {...(total > 0 && { max: total, value: done })}
      />
      <span className="tabular text-quiet text-sm">
        {total > 0 ? `${printNumber(done)} / ${printNumber(total)}` : t('Waiting')}
      </span>
    </span>
  )
}
