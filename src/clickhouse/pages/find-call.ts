/** One call of an account by its number, with all that is known of it. */

import type { ClickHouseClient } from '@clickhouse/client'
import type { CallWithDetail } from '../../../schemas/call-log/detail.ts'
import { readRows } from '../connection.ts'
import { FULL_COLUMNS, type PageRow, toFullRow } from './call-row.ts'

export interface CallQuery {
  readonly accountId: string
  /** null: a call of any key. */
  readonly keyId: string | null
  readonly id: number
}

/** Returns the call; null when the account, or the key, has no such call. */
export async function findCall(
  client: ClickHouseClient,
  { accountId, keyId, id }: CallQuery,
  signal: AbortSignal,
): Promise<CallWithDetail | null> {
  const [row] = await readRows<PageRow>(client, {
    query: `
      SELECT ${FULL_COLUMNS}
      FROM calls
      PREWHERE id = {id:UInt64}
      WHERE account_id = {accountId:String}
        ${keyId === null ? '' : 'AND key_id = {keyId:String}'}
      LIMIT 1`,
    query_params: { accountId, id, ...(keyId !== null && { keyId }) },
    abort_signal: signal,
  })
  return row === undefined ? null : toFullRow(row)
}
