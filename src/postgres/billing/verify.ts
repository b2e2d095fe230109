import { Failure } from '../../../schemas/failure.ts'
import { printCredits } from '../../../schemas/money.ts'
import type { Queryable, Sql } from '../connection.ts'
import { PAYMENT_CHECKS } from '../payments/audit-checks.ts'
import { comparePayments } from '../payments/compare-provider.ts'
import { inTransaction, ONE_INSTANT } from '../transaction.ts'
import { compareLog, readCopied } from './audit-call-log.ts'
import { type AuditScope, CHECKS, type Check } from './audit-checks.ts'
import type { AuditedLog, AuditedPayments, AuditReport, Difference } from './audit-report.ts'
import { callCheck } from './call-checks.ts'
import { keepVerified, readVerified } from './verified.ts'

/** Called before each check with the number of those done, and of all. What it throws ends the audit. */
export type OnStep = (done: number, total: number) => Promise<void>

const ALL_CHECKS = [...CHECKS, callCheck, ...PAYMENT_CHECKS]

/** For each sort and each table of hashes of a check. */
const WORK_MEMORY = '32MB'

export interface AuditOptions {
  /** Reads what was written since the last audit without a difference, where there was one; else everything. */
  readonly isIncremental?: boolean
  readonly payments?: AuditedPayments | undefined
  readonly onStep?: OnStep
}

/** After this time everything is read again, however often only new rows were read in between. */
const FULL_AFTER_DAYS = 30
const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Audits every wallet, and keeps what was found to be right for the next audit. An incremental one that finds a
 * difference is followed by one of everything, whose report is returned.
 */
export async function verifyWallets(
  sql: Sql,
  log?: AuditedLog,
  { isIncremental = false, ...options }: AuditOptions = {},
): Promise<AuditReport> {
  const last = isIncremental ? await readVerified(sql) : null
  const isDue = last === null || Date.now() - last.fullAt.getTime() > FULL_AFTER_DAYS * DAY_MS
  const scope: AuditScope = { since: isDue ? null : last.markedAt }
  const [{ at }] = await sql<[{ at: Date }]>`SELECT now() AS at`
  const report = await audit(sql, scope, log, options)
  if (scope.since !== null && !report.ok) return verifyWallets(sql, log, options)
  if (report.ok) await keepVerified(sql, scope, at)
  return report
}

/**
 * Audits every wallet at one instant; with `log` the call log as well, with `payments` the books of the payment
 * provider, unless they are down. Everything about money is read at one instant.
 */
async function audit(
  sql: Sql,
  scope: AuditScope,
  log: AuditedLog | undefined,
  { payments, onStep = async () => undefined }: Omit<AuditOptions, 'isIncremental'>,
): Promise<AuditReport> {
  const stored = await inTransaction(
    sql,
    (snapshot) => readStored(snapshot, scope, log !== undefined, onStep),
    ONE_INSTANT,
  )
  const { differences, copied } = stored
  // The money was audited, whatever else is down.
  const compare = async (comparing: Promise<readonly Difference[]>): Promise<string | null> => {
    try {
      differences.push(...(await comparing))
      return null
    } catch (error) {
      return explainAway(error)
    }
  }
  const logTrouble = log === undefined || copied === null ? null : await compare(compareLog(sql, copied, log))
  const paymentsTrouble = payments === undefined ? null : await compare(comparePayments(sql, payments))
  return {
    ok: differences.length === 0,
    ...(scope.since !== null && { since: scope.since }),
    accounts: Number(stored.accounts),
    entries: Number(stored.entries),
    differences,
    ...(logTrouble !== null && { logTrouble }),
    ...(paymentsTrouble !== null && { paymentsTrouble }),
  }
}

function explainAway(error: unknown): string {
  if (error instanceof Failure && error.code === 'service_unavailable') return error.internal ?? error.message
  throw error
}

async function readStored(snapshot: Queryable, scope: AuditScope, withCopied: boolean, onStep: OnStep) {
  await snapshot`SELECT set_config('work_mem', ${WORK_MEMORY}, true)`
  const [counts] = await snapshot<[{ accounts: bigint; entries: bigint }]>`
    SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM ledger_entries WHERE ${
      scope.since === null ? snapshot`true` : snapshot`created_at >= ${scope.since}`
    }) AS entries`
  const differences: Difference[] = []
  const steps = ALL_CHECKS.length + Number(withCopied)
  for (const [done, check] of ALL_CHECKS.entries()) {
    await onStep(done, steps)
    differences.push(...(await runCheck(snapshot, check, scope)))
  }
  await onStep(ALL_CHECKS.length, steps)
  return { ...counts, differences, copied: withCopied ? await readCopied(snapshot, scope) : null }
}

async function runCheck(
  sql: Queryable,
  { kind, counts, rowKinds, find }: Check,
  scope: AuditScope,
): Promise<Difference[]> {
  const rows = await find(sql, scope)
  return rows.map(({ account_id, ref, expected, found, ...row }) => {
    const print = (value: string): string =>
      counts === 'credits' && !rowKinds?.has(row.kind ?? kind) ? printCredits(BigInt(value)) : value
    return {
      account_id,
      kind: row.kind ?? kind,
      ...(ref === null ? {} : { ref }),
      expected: print(expected),
      found: print(found),
    }
  })
}
