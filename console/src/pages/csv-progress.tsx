/** The dialog that is open while a CSV file is written. */
import { printNumber } from '../format.ts'
import { t } from '../i18n.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Actions } from '../ui/form.tsx'
import { ErrorState } from '../ui/states.tsx'

interface CsvProgressProps {
  /** The rows that are written. */
  readonly count: number
  readonly failure: Error | null
  onRetry(): void
  onClose(): void
}

export const CsvProgress = ({ count, failure, onRetry, onClose }: CsvProgressProps) => (
  <Dialog title={t('Export as CSV')} onClose={onClose}>
    <p aria-live="polite" className="tabular">
      {t('{count} rows written', { count: printNumber(count) })}
    </p>
    {failure === null && <progress className="mt-3 h-2 w-full accent-accent" aria-label={t('Progress')} />}
    <ErrorState error={failure} onRetry={onRetry} />
    <Actions>
      <Button onClick={onClose}>{t('Cancel')}</Button>
    </Actions>
  </Dialog>
)
