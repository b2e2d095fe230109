import { Failure } from '../../../schemas/failure.ts'
import { printCredits } from '../../../schemas/money.ts'
import { compareLog, readCopied } from '../accounts/audit-log.ts'
import type { Queryable, Sql } from '../connection.ts'
import { PAYMENT_CHECKS } from '../payments/audit-checks.ts'
import { comparePayments } from '../payments/compare-provider.ts'
import { inTransaction } from '../transaction.ts'
import { CHECKS, type Check } from './audit-checks.ts'
import type { AuditedLog, AuditedPayments, AuditReport, Difference } from './audit-report.ts'

/** Called before each check with the number of those done, and of all. What it throws ends the audit. */
export type OnStep = (done: number, total: number) => Promise<void>

const ALL_CHECKS = [...CHECKS, ...PAYMENT_CHECKS]

const ONE_INSTANT = 'isolation level repeatable read read only'

export interface AuditOptions {
  readonly payments?: AuditedPayments | undefined
  readonly onStep?: OnStep
}

/**
 * Audits every wallet at one instant; with `log` the call log as well, with `payments` the books of the payment
 * provider, unless they are away. Everything about money is read at one instant.
 */
export async function verifyWallets(
  sql: Sql,
  log?: AuditedLog,
  { payments, onStep = async () => undefined }: AuditOptions = {},
): Promise<AuditReport> {
  const stored = await inTransaction(
    sql,
    (snapshot) => readStored(snapshot, log !== undefined, onStep),
    ONE_INSTANT,
  )
  const { differences, copied } = stored
  // The money was audited, whatever is away.
  const compare = async (comparing: Promise<readonly Difference[]>): Promise<string | null> => {
    try {
      differences.push(...(await comparing))
      return null
    } catch (error) {
      return awayReason(error)
    }
  }
  const logTrouble = log === undefined || copied === null ? null : await compare(compareLog(sql, copied, log))
  const paymentsTrouble = payments === undefined ? null : await compare(comparePayments(sql, payments))
  return {
    ok: differences.length === 0,
    accounts: Number(stored.accounts),
    entries: Number(stored.entries),
    differences,
    ...(logTrouble !== null && { logTrouble }),
    ...(paymentsTrouble !== null && { paymentsTrouble }),
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
  const steps = ALL_CHECKS.length + Number(withCopied)
  for (const [done, check] of ALL_CHECKS.entries()) {
    await onStep(done, steps)
    differences.push(...(await runCheck(snapshot, check)))
  }
  await onStep(ALL_CHECKS.length, steps)
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
