/** What the page of calls asks for, and the statuses that it names. The router asks it before the page is loaded. */
import type { RegisteredRouter, RouteById } from '@tanstack/react-router'
import type { LogRow } from '../../../../schemas/call-log/columns.ts'
import { toZoneWindow } from '../../format.ts'
import { t } from '../../i18n.ts'
import type { Statuses } from '../../ui/states.tsx'

type Search = RouteById<RegisteredRouter['routeTree'], '/signed-in/calls'>['types']['fullSearchSchema']
export type CallFilters = Readonly<Omit<Search, 'account' | 'call' | 'live'>>

const PAGE_ROWS = 100

/** Returns the filters as the API takes them: a day is one of the reader's time zone. */
export const toCallQuery = (filters: CallFilters): CallFilters => ({ ...filters, ...toZoneWindow(filters) })

/** Returns the input of the list, from the parameters of the URL. */
export const toListInput = (accountId: string, { call: _, live: __, account: ___, ...filters }: Search) =>
  ({ account_id: accountId, limit: PAGE_ROWS, ...toCallQuery(filters) }) as never

export const describeStatuses = (): Statuses<LogRow['status']> => ({
  success: ['good', t('Success')],
  error: ['bad', t('Error')],
  interrupted: ['warn', t('Interrupted')],
  rejected: ['neutral', t('Rejected')],
})
