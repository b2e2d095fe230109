/** The keys of an account by name, for filters and rows. */
import { queryOptions } from '@tanstack/react-query'
import type { listKeys } from '../../../schemas/management/accounts/keys.ts'
import { get } from './client.ts'

const MAX_KEYS = 200

export const keyNamesQuery = (accountId: string) =>
  queryOptions({
    queryKey: ['/keys', 'names', accountId],
    queryFn: ({ signal }) =>
      get<typeof listKeys>('/keys', { account_id: accountId, limit: MAX_KEYS }, signal),
  })
