/** Records that the configuration file was replaced. */
import { recordOperation } from '../accounts/audit-record.ts'
import type { Sql } from '../connection.ts'

/** Records the operation as part of its transaction. @param difference contains no secrets */
export const recordConfiguration = (sql: Sql, difference: object): Promise<void> =>
  recordOperation(sql, {
    action: 'configuration.apply',
    accountId: null,
    subjectId: 'configuration',
    after: difference,
  })
