/** Reports how the calls of the last day were metered, and which balances are negative, only for the operators. */
import { createHash } from 'node:crypto'
import type { Credits } from '../../schemas/money.ts'
import type { Queryable, Sql } from './connection.ts'
import { toStorable } from './json.ts'
import { inTransaction, ONE_INSTANT } from './transaction.ts'

/** Period of the summary. */
const METERED_WINDOW_MS = 24 * 60 * 60 * 1000
/** Groups and wallets beyond this many are left out, those with the fewest calls and the smallest debts first. */
const MAX_ROWS = 100

/** Charged calls of one account, model and channel. */
interface MeteredGroup {
  readonly account_id: string
  readonly model: string
  readonly channel_id: string
  readonly calls: number
  /** Of them, charged by estimate. */
  readonly estimated: number
  /** Of them, with reported usage that no call can have. */
  readonly suspect: number
  /** Of them, answered by another model than was requested. */
  readonly otherModel: number
}

export interface MeteringReport {
  /** Groups with anomalies: without an estimate, a suspect or another model a group is left out. */
  readonly groups: readonly MeteredGroup[]
  readonly negative: readonly { readonly account_id: string; readonly balance: Credits }[]
}

// The detail is JSON that `detail-text.ts` writes: a quote inside a text of it is escaped, so only a name matches.
const HAS_SUSPECT = '%,"usage_suspect":"%'
const HAS_OTHER_MODEL = '%,"answered_by_other_model":1%'

/**
 * Returns how calls that ended since then (epoch milliseconds; default: in the last day) were metered, and which
 * balances are negative.
 */
export const reportMetering = (
  sql: Sql,
  since: number = Date.now() - METERED_WINDOW_MS,
): Promise<MeteringReport> => inTransaction(sql, (snapshot) => readReport(snapshot, since), ONE_INSTANT)

async function readReport(sql: Queryable, since: number): Promise<MeteringReport> {
  // No call lasts longer than a day: what was admitted before is in months that need not be read.
  const groups = await sql<MeteredGroup[]>`
    SELECT * FROM (
      SELECT account_id, model, channel_id, count(*)::integer AS calls,
        (count(*) FILTER (WHERE usage_source = 'estimate'))::integer AS estimated,
        (count(*) FILTER (WHERE detail LIKE ${HAS_SUSPECT}))::integer AS suspect,
        (count(*) FILTER (WHERE detail LIKE ${HAS_OTHER_MODEL}))::integer AS "otherModel"
      FROM usage_rows
      WHERE created_at >= ${since} AND submitted_at >= ${since - METERED_WINDOW_MS} AND usage_source <> 'none' AND channel_id IS NOT NULL AND task_id IS NULL
      GROUP BY 1, 2, 3
    ) AS metered
    WHERE estimated + suspect + "otherModel" > 0
    ORDER BY calls DESC, 1, 2, 3 LIMIT ${MAX_ROWS}`
  const negative = await sql<{ account_id: string; balance: Credits }[]>`
    SELECT account_id, balance FROM wallets WHERE balance < 0 ORDER BY balance, 1 LIMIT ${MAX_ROWS}`
  return { groups: [...groups], negative: [...negative] }
}

export async function countNegativeBalances(sql: Queryable): Promise<number> {
  const [row] = await sql<[{ count: number }]>`SELECT count(*)::integer FROM wallets WHERE balance < 0`
  return row.count
}

/** Keeps a line that is no settlement beside those that were refused; once, however often it comes. */
export async function keepMalformed(sql: Queryable, line: string, reason: string): Promise<void> {
  const id = `malformed_${createHash('sha256').update(line).digest('hex').slice(0, 32)}`
  await sql`
    INSERT INTO settlements_refused (request_id, reason, settlement)
    VALUES (${id}, ${toStorable(`malformed: ${reason}`)}, ${JSON.stringify(toStorable(line))}) ON CONFLICT DO NOTHING`
}
