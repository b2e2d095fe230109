import { printCredits } from '../../schemas/money.ts'
import { CHECKS, type Check, MAX_DIFFERENCES_PER_KIND } from './audit-checks.ts'
import type { AuditReport, Difference, LogSum, ReadLogSums } from './audit-report.ts'
import type { Queryable, Sql } from './connection.ts'
import { inTransaction } from './transaction.ts'

const ONE_INSTANT = 'isolation level repeatable read read only'

/** Contract: `Database.verifyWallets`. Everything in PostgreSQL is read at one instant. */
export async function verifyWallets(sql: Sql, readLogSums?: ReadLogSums): Promise<AuditReport> {
  const stored = await inTransaction(
    sql,
    (snapshot) => readStored(snapshot, readLogSums !== undefined),
    ONE_INSTANT,
  )
  const { differences, copied } = stored
  if (readLogSums !== undefined && copied !== null)
    differences.push(...compareLog(copied.sums, await readLogSums(copied.upto)))
  return {
    ok: differences.length === 0,
    accounts: Number(stored.accounts),
    entries: Number(stored.entries),
    differences,
  }
}

async function readStored(snapshot: Queryable, withCopied: boolean) {
  const [counts] = await snapshot<[{ accounts: bigint; entries: bigint }]>`
    SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM ledger_entries) AS entries`
  const differences: Difference[] = []
  for (const check of CHECKS) differences.push(...(await runCheck(snapshot, check)))
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

/** What the call log must hold: the sums over the rows that were copied for good. */
async function readCopied(sql: Queryable): Promise<{ upto: bigint; sums: LogSum[] }> {
  const [mark] = await sql<[{ copied_upto: bigint }]>`SELECT copied_upto FROM usage_copy`
  const sums = await sql<{ account_id: string; rows: bigint; cost: string }[]>`
    SELECT account_id, count(*) AS rows, sum(cost)::text AS cost
    FROM usage_rows WHERE id <= ${mark.copied_upto} GROUP BY account_id`
  return {
    upto: mark.copied_upto,
    sums: sums.map(({ account_id, rows, cost }) => ({ accountId: account_id, rows, cost: BigInt(cost) })),
  }
}

/** Both hold the sums over rows with the same ids; an account that one of them lacks has no rows there. */
export function compareLog(booked: readonly LogSum[], logged: readonly LogSum[]): Difference[] {
  const found = new Map(logged.map((sum) => [sum.accountId, sum]))
  const expected = new Map(booked.map((sum) => [sum.accountId, sum]))
  const differences: Difference[] = []
  for (const account_id of [...new Set([...expected.keys(), ...found.keys()])].sort()) {
    const [ours, theirs] = [expected.get(account_id), found.get(account_id)]
    if (ours?.rows !== theirs?.rows) {
      const rows = { expected: String(ours?.rows ?? 0n), found: String(theirs?.rows ?? 0n) }
      differences.push({ account_id, kind: 'log_rows', ...rows })
    }
    if ((ours?.cost ?? 0n) !== (theirs?.cost ?? 0n)) {
      const costs = { expected: printCredits(ours?.cost ?? 0n), found: printCredits(theirs?.cost ?? 0n) }
      differences.push({ account_id, kind: 'log_cost', ...costs })
    }
  }
  return differences.slice(0, 2 * MAX_DIFFERENCES_PER_KIND)
}
