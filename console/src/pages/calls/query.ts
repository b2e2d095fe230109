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
/** An id of a call is one of its account: `call_account` names it. */
export const ALL_CALLS_SEARCH = `${CALL_SEARCH} call_account account_id channel_id` as const
export const readCallSearch = validateTexts(CALL_SEARCH)
export const readAllCallsSearch = validateTexts(ALL_CALLS_SEARCH)

type Search = ReturnType<typeof readCallSearch>
export type CallFilters = Readonly<
  Omit<Search, 'call' | 'live'> & { account_id?: string; channel_id?: string }
>

/** A call of an account, or one of all accounts, which names its account and its channel. */
export type ShownCall = LogRow & {
  readonly account_id?: string
  readonly account_name?: string | null
  readonly channel_id?: string | null
}

/** All accounts have many calls: without a choice, only those of today are shown. */
export const ALL_CALLS_USUAL = { period: 'today' } satisfies CallFilters

const PAGE_ROWS = 100

/** Returns the filters as the API takes them: a day is one of the reader's time zone. */
export const toCallQuery = (filters: CallFilters): CallFilters => ({ ...filters, ...toZoneWindow(filters) })

/** Returns the input of the list of an account, from the parameters of the URL. */
export const toListInput = (accountId: string, { call: _, live: __, ...filters }: Search) =>
  ({ account_id: accountId, limit: PAGE_ROWS, ...toCallQuery(filters) }) as never

/** Returns the input of the list of all accounts, from the parameters of the URL. */
export const toWholeListInput = (search: ReturnType<typeof readAllCallsSearch>) => {
  const { call: _, live: __, call_account: ___, ...filters } = search
  return { limit: PAGE_ROWS, ...toCallQuery({ ...ALL_CALLS_USUAL, ...filters }) } as never
}

export const describeStatuses = (): Statuses<LogRow['status']> => ({
  success: ['good', t('Success')],
  error: ['bad', t('Error')],
  interrupted: ['warn', t('Interrupted')],
  rejected: ['neutral', t('Rejected')],
})
