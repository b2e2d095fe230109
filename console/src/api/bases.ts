/** The knowledge bases of an account, and those that it may read. */
import { queryOptions } from '@tanstack/react-query'
import type { listBases } from '../../../schemas/management/knowledge/bases.ts'
import { get } from './client.ts'

/** Path of their operations. */
export const BASES = '/knowledge-bases'

export const basesQuery = (accountId: string) =>
  queryOptions({
    queryKey: [BASES, accountId],
    queryFn: ({ signal }) => get<typeof listBases>(BASES, { account_id: accountId }, signal),
  })
