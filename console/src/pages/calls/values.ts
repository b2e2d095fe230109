/** What the calls of the chosen period have, with the number of calls: suggestions and counts of filters. */
import { useGet } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'
import { type CallFilters, toCallQuery } from './query.ts'

/** @param isWhole true for the calls of all accounts */
export function useCallValues(filters: CallFilters, isWhole: boolean, isWanted = true) {
  const { account_id } = useAccount()
  const { period, from, to } = toCallQuery(filters)
  const query = { account_id: isWhole ? filters.account_id : account_id, period, from, to } as never
  return useGet(isWhole ? 'listAllCallValues' : 'listCallValues', query, { enabled: isWanted }).data
}
