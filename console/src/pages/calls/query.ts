/** What the pages of calls ask for, and the statuses that they name. The router asks it before a page is loaded. */
import type { LogRow } from '../../../../schemas/call-log/columns.ts'
import { toZoneWindow } from '../../format.ts'
import { t } from '../../i18n.ts'
import { validateTexts } from '../../search.ts'
import type { Statuses } from '../../ui/states.tsx'

const FILTERS =
  'period from to model status key_id unit_type error_code ref session_id model_part key_part not_model not_error_code cost_above latency_above_ms order'
/** What the URL keeps. */
export const CALL_SEARCH = `${FILTERS} call live` as const
export const ALL_CALLS_SEARCH = `${FILTERS} account_id channel_id` as const
export const readCallSearch = validateTexts(CALL_SEARCH)

type Search = ReturnType<typeof readCallSearch>
export type CallFilters = Readonly<
  Omit<Search, 'call' | 'live'> & { account_id?: string; channel_id?: string }
>

const PAGE_ROWS = 100

/** Returns the filters as the API takes them: a day is one of the reader's time zone. */
export const toCallQuery = (filters: CallFilters): CallFilters => ({ ...filters, ...toZoneWindow(filters) })

/** Returns the input of the list, from the parameters of the URL. */
export const toListInput = (accountId: string, { call: _, live: __, ...filters }: Search) =>
  ({ account_id: accountId, limit: PAGE_ROWS, ...toCallQuery(filters) }) as never

export const describeStatuses = (): Statuses<LogRow['status']> => ({
  success: ['good', t('Success')],
  error: ['bad', t('Error')],
  interrupted: ['warn', t('Interrupted')],
  rejected: ['neutral', t('Rejected')],
})
