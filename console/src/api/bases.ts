/** Reads the knowledge bases of an account and those that are shared with it. */

import type { Query } from '@tanstack/react-query'
import type { OperationPath } from '../../../schemas/routes.ts'
import { useGet } from './read.ts'

export const BASES = '/knowledge-bases' satisfies OperationPath

/** Returns whether a query reads bases or the content of one. */
export const isOfBases = ({ queryKey: [path] }: Query): boolean => String(path).startsWith(BASES)

export const useBases = (accountId: string) => useGet('listBases', { account_id: accountId })
