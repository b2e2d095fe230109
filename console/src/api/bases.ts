/** The knowledge bases of an account, and those that it may read. */

import type { Query } from '@tanstack/react-query'
import type { OperationPath } from '../../../schemas/routes.ts'
import { useGet } from './read.ts'

/** Path of their operations. */
export const BASES = '/knowledge-bases' satisfies OperationPath

/** Whether a query reads bases, or what is in one. */
export const isOfBases = ({ queryKey: [path] }: Query): boolean => String(path).startsWith(BASES)

export const useBases = (accountId: string) => useGet('listBases', { account_id: accountId })
