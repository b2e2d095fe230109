/** The keys of an account by name, for filters and rows. */

import { queryOptions, useQuery } from '@tanstack/react-query'
import type { OperationPath } from '../../../schemas/routes.ts'
import type { AnswerOf } from './client.ts'
import { readPages } from './read.ts'
import { useAccount } from './session.ts'

type Key = AnswerOf<'listKeys'>['data'][number]

/** An account may have a million keys: no list to choose from shows them. */
export const MAX_NAMED_KEYS = 10_000

export interface KeyNames {
  readonly keys: readonly Key[]
  /** Whether the account has no others. */
  readonly isWhole: boolean
}

const keyNamesQuery = (accountId: string) =>
  queryOptions({
    queryKey: ['/keys' satisfies OperationPath, 'names', accountId],
    staleTime: 60_000,
    queryFn: async ({ signal }): Promise<KeyNames> => {
      const keys: Key[] = []
      for await (const page of readPages('listKeys', { account_id: accountId }, signal)) {
        if (keys.length >= MAX_NAMED_KEYS) return { keys, isWhole: false }
        keys.push(...page)
      }
      return { keys, isWhole: true }
    },
  })

/** Reads the keys of the page's account by name; nothing for the role that sees no keys. */
export function useKeyNames() {
  const { account_id: accountId, role } = useAccount()
  return useQuery({ ...keyNamesQuery(accountId), enabled: role !== 'billing' })
}
