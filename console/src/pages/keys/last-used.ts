/** When keys were used, by the call log. */
import { useQuery } from '@tanstack/react-query'
import type { showUsage } from '../../../../schemas/management/calls/usage.ts'
import { get } from '../../api/client.ts'
import { useAccount } from '../../api/session.ts'

/** Returns the last day of the last thirty on which each key was used; a key without a call is absent. */
export function useLastUsed(): ReadonlyMap<string, string> {
  const { account_id, role } = useAccount()
  const { data } = useQuery({
    queryKey: ['/usage', account_id, 'last used'],
    queryFn: ({ signal }) =>
      get<typeof showUsage>('/usage', { account_id, by: 'key', period: '30d' }, signal),
    enabled: role !== 'member',
  })
  return new Map(data?.by_day.map(({ group, date }) => [group, date]))
}
