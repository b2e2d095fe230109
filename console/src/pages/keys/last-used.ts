/** When keys were used, by the call log. */
import { useGet } from '../../api/read.ts'
import { useAccount } from '../../api/session.ts'

/** Returns the last day of the last thirty on which each key was used; a key without a call is absent. */
export function useLastUsed(): ReadonlyMap<string, string> {
  const { account_id, role } = useAccount()
  const { data } = useGet(
    'showUsage',
    { account_id, by: 'key', period: '30d' },
    { enabled: role !== 'member' },
  )
  return new Map(data?.by_day.map(({ group, date }) => [group, date]))
}
