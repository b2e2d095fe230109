/** The audit of the books, as the job and the command run it. */

import type { Verified } from '../../schemas/management/jobs.ts'
import { printCredits } from '../../schemas/money.ts'
import type { AuditedLog, AuditedPayments } from '../../src/postgres/billing/audit-report.ts'
import type { Audits } from '../../src/postgres/billing/repository.ts'
import type { OnStep } from '../../src/postgres/billing/verify.ts'
import type { MeteringReport } from '../../src/postgres/metering.ts'
import { auditReportShape } from '../management/shapes.ts'

export interface VerifyDeps {
  readonly database: { readonly audits: Audits }
  readonly callLog: AuditedLog
  /** The payment provider, where there is one. */
  readonly payments?: AuditedPayments | undefined
  /** Reads everything. Default: what was written since the last audit without a difference. */
  readonly isFull?: boolean
}

const PERCENT = 100

/** Returns what the report has; nothing of a part without entries. */
function meteringShape({ groups, negative }: MeteringReport): Partial<Verified> {
  const metered = groups.map(({ otherModel, ...group }) => ({
    ...group,
    estimated_percent: Math.round((group.estimated / group.calls) * PERCENT),
    other_model: otherModel,
  }))
  const balances = negative.map(({ account_id, balance }) => ({
    account_id,
    balance: printCredits(balance),
  }))
  return {
    ...(metered.length > 0 && { metered_last_day: metered }),
    ...(balances.length > 0 && { negative_balances: balances }),
  }
}

/** Audits every wallet, the ledger, the call log and payments, and reports how the calls of the last day were metered. */
export async function verifyBooks(
  { database, callLog, payments, isFull = false }: VerifyDeps,
  onStep?: OnStep,
): Promise<Verified> {
  const audit = await database.audits.verifyWallets(callLog, {
    isIncremental: !isFull,
    payments,
    ...(onStep && { onStep }),
  })
  const metering = await database.audits.reportMetering()
  return { ...auditReportShape(audit), ...meteringShape(metering) }
}
