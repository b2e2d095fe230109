import { Failure } from '../../../schemas/failure.ts'
import { printCredits } from '../../../schemas/money.ts'
import { compareLog, readCopied } from '../accounts/audit-log.ts'
import type { Queryable, Sql } from '../connection.ts'
import { inTransaction } from '../transaction.ts'
import { CHECKS, type Check } from './audit-checks.ts'
import type { AuditedLog, AuditReport, Difference } from './audit-report.ts'

/** Called before each check with the number of those done, and of all. What it throws ends the audit. */
export type OnStep = (done: number, total: number) => Promise<void>

const ONE_INSTANT = 'isolation level repeatable read read only'

/**
 * Audits every wallet at one instant; with `log` the call log as well, unless it is away. Everything about money is
 * read at one instant.
 */
export async function verifyWallets(
  sql: Sql,
  log?: AuditedLog,
  onStep: OnStep = async () => undefined,
): Promise<AuditReport> {
  const stored = await inTransaction(
    sql,
    (snapshot) => readStored(snapshot, log !== undefined, onStep),
    ONE_INSTANT,
  )
  const { differences, copied } = stored
  let logTrouble: string | null = null
  if (log !== undefined && copied !== null)
    try {
      differences.push(...(await compareLog(sql, copied, log)))
    } catch (error) {
      // The money was audited all the same.
      logTrouble = awayReason(error)
    }
  return {
    ok: differences.length === 0,
    accounts: Number(stored.accounts),
    entries: Number(stored.entries),
    differences,
    ...(logTrouble !== null && { logTrouble }),
  }
}

function awayReason(error: unknown): string {
  if (error instanceof Failure && error.code === 'service_unavailable') return error.internal ?? error.message
  throw error
}

async function readStored(snapshot: Queryable, withCopied: boolean, onStep: OnStep) {
  const [counts] = await snapshot<[{ accounts: bigint; entries: bigint }]>`
    SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM ledger_entries) AS entries`
  const differences: Difference[] = []
  const steps = CHECKS.length + Number(withCopied)
  for (const [done, check] of CHECKS.entries()) {
    await onStep(done, steps)
    differences.push(...(await runCheck(snapshot, check)))
  }
  await onStep(CHECKS.length, steps)
  return { ...counts, differences, copied: withCopied ? await readCopied(snapshot) : null }
}

async function runCheck(sql: Queryable, { kind, counts, find }: Check): Promise<Difference[]> {
  const print = (value: string): string => (counts === 'credits' ? printCredits(BigInt(value)) : value)
  const rows = await find(sql)
  return rows.map(({ account_id, ref, expected, found }) => ({
    account_id,
    kind,
    ...(ref === null ? {} : { ref }),
    expected: print(expected),
    found: print(found),
  }))
}
