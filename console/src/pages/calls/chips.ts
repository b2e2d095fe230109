/** The filters of calls that are chips. */
import { printDuration, printExact } from '../../format.ts'
import { t } from '../../i18n.ts'
import type { CallFilters, ShownCall } from './query.ts'

/** Returns their names. */
export const nameChips = () =>
  ({
    account_id: t('Account'),
    channel_id: t('Channel'),
    model: t('Model'),
    model_part: t('Model contains'),
    key_id: t('Key'),
    key_part: t('Key contains'),
    error_code: t('Error code'),
    not_model: t('Model is not'),
    not_error_code: t('Error code is not'),
    cost_above: t('Cost in credits above'),
    latency_above_ms: t('Longer than'),
    session_id: t('Session'),
    ref: t('Request or task'),
    unit_type: t('Kind'),
    order: t('Order'),
  }) as const

export type Chip = keyof ReturnType<typeof nameChips>

/** Filters by more than a number. */
export type Bound = 'cost_above' | 'latency_above_ms'

export const printBound = (chip: Bound, value: string): string =>
  chip === 'cost_above' ? printExact(value) : printDuration(Number(value))

export interface AddFilterProps {
  readonly filters: CallFilters
  /** True if the calls are those of all accounts. */
  readonly isWhole?: boolean
  /** The calls on the page. */
  readonly rows: readonly ShownCall[]
}
