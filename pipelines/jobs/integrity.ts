/** Jobs on the integrity of the books: verify the wallets, rebuild the call log. */
import type { Rebuilt } from '../../schemas/management/jobs.ts'
import type { CallLog } from '../../src/clickhouse/call-log.ts'
import type { AuditedPayments } from '../../src/postgres/billing/audit-report.ts'
import type { Database } from '../../src/postgres/database.ts'
import { rebuildLog } from '../call-log/rebuild.ts'
import type { RunJob } from './run-jobs.ts'
import { verifyBooks } from './verify.ts'

interface IntegrityDeps {
  readonly database: Database
  readonly callLog: CallLog
  /** Null: there is no payment provider. */
  readonly openProvider: (() => Promise<AuditedPayments>) | null
}

export const bindIntegrityJobs = ({ database, callLog, openProvider }: IntegrityDeps) =>
  ({
    verify: async ({ input }, report) => {
      const isFull = (input as { full?: boolean } | null)?.full === true
      const deps = { database, callLog, payments: await openProvider?.(), isFull }
      return { result: await verifyBooks(deps, report) }
    },
    rebuild: async ({ input }, report) => ({
      result: (await rebuildLog({
        database,
        callLog,
        ...((input as { delete_unbooked?: boolean } | null)?.delete_unbooked === true && {
          confirmDeletion: async () => {},
        }),
        onProgress: ({ rows, total }) => report(rows, total),
      })) satisfies Rebuilt,
    }),
  }) satisfies Record<string, RunJob>
