/** Reads the names of an account's keys, for filters and tables. */

import { queryOptions, useQuery } from '@tanstack/react-query'
import type { OperationPath } from '../../../schemas/routes.ts'
import type { AnswerOf } from './client.ts'
import { readPages } from './read.ts'
import { useAccount } from './session.ts'

type Key = AnswerOf<'listKeys'>['data'][number]

/** An account may have a million keys: a filter cannot list them all. */
export const MAX_NAMED_KEYS = 10_000

export interface KeyNames {
  readonly keys: readonly Key[]
  /** True if the account has no other keys. */
  readonly isWhole: boolean
}

const keyNamesQuery = (accountId: string) =>
  queryOptions({
    queryKey: ['/keys' satisfies OperationPath, 'names', accountId],
    staleTime: 60_000,
    // They may fill many pages: only those that are stale are read again.
    refetchOnWindowFocus: true,
    queryFn: async ({ signal }): Promise<KeyNames> => {
      const keys: Key[] = []
      for await (const page of readPages('listKeys', { account_id: accountId }, signal)) {
        if (keys.length >= MAX_NAMED_KEYS) return { keys, isWhole: false }
        keys.push(...page)
      }
      return { keys, isWhole: true }
    },
  })

/** Reads the names of the keys; none for a role that may not see keys. */
export function useKeyNames(isWanted = true) {
  const { account_id: accountId, role } = useAccount()
  return useQuery({ ...keyNamesQuery(accountId), enabled: isWanted && role !== 'billing' })
}
