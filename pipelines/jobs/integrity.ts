/** Jobs on the integrity of the books: verify the wallets, rebuild the call log. */
import type { Rebuilt } from '../../schemas/management/jobs.ts'
import type { AuditedLog } from '../../src/postgres/billing/audit-report.ts'
import type { WalletAudits } from '../../src/postgres/billing/repository.ts'
import { type LogRebuildDeps, rebuildLog } from '../call-log/rebuild.ts'
import { auditReportShape } from '../management/shapes.ts'
import type { RunJob } from './run-jobs.ts'

export interface IntegrityDeps {
  readonly database: LogRebuildDeps['database'] & Pick<WalletAudits, 'verifyWallets'>
  readonly callLog: LogRebuildDeps['callLog'] & AuditedLog
}

export const integrityJobs = ({ database, callLog }: IntegrityDeps) =>
  ({
    verify: async (_, report) => ({
      result: auditReportShape(await database.verifyWallets(callLog, report)),
    }),
    rebuild: async (_, report) => ({
      result: (await rebuildLog({
        database,
        callLog,
        onProgress: ({ rows, total }) => report(rows, total),
      })) satisfies Rebuilt,
    }),
  }) satisfies Record<string, RunJob>
