/** Budgets of keys, members and accounts. Changes and bookings exclude each other, so that no call is counted twice. */
import type { Budget, BudgetScope } from '../../../schemas/accounts/budget.ts'
import type { Credits } from '../../../schemas/money.ts'
import { newId } from '../../core/keys/ids.ts'
import { showAccount } from '../accounts/accounts.ts'
import { showKey } from '../accounts/keys.ts'
import { memberNotFound, readMemberRole } from '../accounts/members.ts'
import { addWithin } from '../collections.ts'
import type { Queryable, Sql } from '../connection.ts'
import type { Listing } from '../listing.ts'
import { LOCKS } from '../locks.ts'
import { inTransaction, type Transaction } from '../transaction.ts'
import { type BudgetJson, parseBudget } from './budget-rows.ts'
import { Refusal } from './refusal.ts'

export type NewBudget = Omit<Budget, 'id'>

/** A budget with its current period. */
export interface BudgetState {
  readonly budget: Budget
  /** Of the key, the member or the account. */
  readonly name: string
  readonly spent: Credits
  /** By calls and tasks under way. */
  readonly reserved: Credits
  /** Epoch milliseconds. */
  readonly startsAt: number
  readonly resetsAt: number
  readonly createdAt: Date
}

interface StateRow {
  budget: BudgetJson
  name: string
  spent: Credits
  reserved: Credits
  starts_at: bigint
  resets_at: bigint
  created_at: Date
}

const toBudgetState = (row: StateRow): BudgetState => ({
  budget: parseBudget(row.budget),
  name: row.name,
  spent: row.spent,
  reserved: row.reserved,
  startsAt: Number(row.starts_at),
  resetsAt: Number(row.resets_at),
  createdAt: row.created_at,
})

const budgetNotFound = (id: string): Refusal => new Refusal('budget_not_found', `There is no budget ${id}`)

/** A clock of PostgreSQL may differ from that of a gateway by less than this. */
const CLOCK_DIFFERENCE_MS = 60 * 60 * 1000
const MICROSECONDS_PER_MS = 1000n

const otherBudgets =
  ({ accountId, subjectId, period }: NewBudget) =>
  (sql: Transaction) =>
    sql`
    SELECT FROM budgets
    WHERE account_id = ${accountId} AND (subject_id <> ${subjectId} OR period <> ${period})`

/**
 * Creates a budget, or replaces the one of the same subject and period. Counts what was spent in the current period
 * before.
 * @throws Refusal `account_not_found`, `member_not_found`, `key_not_found`, `key_revoked`, `timezone_unknown`,
 *   `limit_reached`
 */
export const putBudget = (sql: Sql, wanted: NewBudget): Promise<BudgetState> =>
  addWithin(
    sql,
    { limit: 'budgets_per_account', ownerId: wanted.accountId, entries: otherBudgets(wanted) },
    async (transaction) => {
      await assertSubject(transaction, wanted)
      const { accountId, scope, subjectId, amount, period } = wanted
      const timezone = await readTimezone(transaction, wanted.timezone)
      const [{ start: from }] = await transaction<[{ start: bigint }]>`
      SELECT period_start(${period}, ${timezone}, now_ms()) AS start`
      const start = Number(from)
      const isCounted = async () => (await findTimezone(transaction, wanted)) === timezone
      // All but the newest rows without the lock: bookings go on meanwhile.
      const early = (await isCounted())
        ? { cost: 0n, lastId: null }
        : await sumSpentSince(transaction, wanted, start, toIdBefore(start))
      await transaction`SELECT pg_advisory_xact_lock(${LOCKS.booking})`
      const isAmountAlone = await isCounted()
      const late = isAmountAlone
        ? null
        : await sumSpentSince(transaction, wanted, start, early.lastId ?? toIdBefore(start))
      const [{ id }] = await transaction<[{ id: string }]>`
      INSERT INTO budgets (id, account_id, scope, subject_id, amount, period, timezone, counts_from)
      VALUES (${newId('bud')}, ${accountId}, ${scope}, ${subjectId}, ${amount}, ${period}, ${timezone}, ${start})
      ON CONFLICT (account_id, subject_id, period) DO UPDATE
      SET amount = excluded.amount, timezone = excluded.timezone,
        counts_from = ${isAmountAlone ? transaction`budgets.counts_from` : transaction`excluded.counts_from`}
      RETURNING id`
      // Periods of another time zone overlap those of this one.
      if (!isAmountAlone) await transaction`DELETE FROM budget_periods WHERE budget_id = ${id}`
      await transaction`
      INSERT INTO budget_periods AS p (budget_id, starts_at, spent)
      VALUES (${id}, ${start}, ${late === null ? 0n : early.cost + late.cost})
      ON CONFLICT (budget_id, starts_at) DO UPDATE SET version = p.version + 1`
      const state = await showBudget(transaction, id)
      await transaction`
      SELECT record_thresholds(b, ${start}, -1, ${state.spent}) FROM budgets AS b WHERE id = ${id}`
      return state
    },
  )

async function findTimezone(
  sql: Queryable,
  { accountId, subjectId, period }: NewBudget,
): Promise<string | undefined> {
  const [row] = await sql<{ timezone: string }[]>`
    SELECT timezone FROM budgets WHERE account_id = ${accountId} AND subject_id = ${subjectId} AND period = ${period}`
  return row?.timezone
}

/** Returns an id of usage rows below those of calls since an instant: they follow the clock, in microseconds. */
const toIdBefore = (instant: number): bigint => BigInt(instant - CLOCK_DIFFERENCE_MS) * MICROSECONDS_PER_MS

async function assertSubject(sql: Queryable, { accountId, scope, subjectId }: NewBudget): Promise<void> {
  await showAccount(sql, accountId)
  if (scope === 'key') {
    const key = await showKey(sql, subjectId)
    if (key.accountId !== accountId)
      throw new Refusal('key_not_found', `There is no key ${subjectId} in ${accountId}`)
    if (key.revokedAt !== null)
      throw new Refusal('key_revoked', `Key ${subjectId} has been revoked: it spends nothing`)
  } else if (scope === 'member') {
    if ((await readMemberRole(sql, accountId, subjectId)) === null) throw memberNotFound(accountId, subjectId)
  }
}

/** Returns the name as PostgreSQL spells it. An unknown one in an expression would end the transaction. */
async function readTimezone(sql: Queryable, wanted: string): Promise<string> {
  const [known] = await sql<{ name: string }[]>`
    SELECT name FROM pg_timezone_names WHERE lower(name) = lower(${wanted})`
  if (known === undefined)
    throw new Refusal('timezone_unknown', `There is no time zone ${wanted}: name one such as Europe/Berlin`)
  return known.name
}

async function sumSpentSince(
  sql: Queryable,
  { accountId, subjectId }: NewBudget,
  start: number,
  behind: bigint,
) {
  const [row] = await sql<[{ cost: Credits; last_id: bigint | null }]>`
    SELECT * FROM spent_since(${accountId}, ${subjectId}, ${start}, ${behind})`
  return { cost: row.cost, lastId: row.last_id }
}

const columns = (sql: Queryable) => sql`
  json_build_object('id', b.id, 'account_id', b.account_id, 'scope', b.scope, 'subject_id', b.subject_id,
    'amount', b.amount::text, 'period', b.period, 'timezone', b.timezone) AS budget,
  coalesce((SELECT name FROM api_keys WHERE id = b.subject_id), (SELECT name FROM accounts WHERE id = b.subject_id)) AS name,
  s.spent, s.reserved, s.starts_at, s.resets_at, b.created_at`

/** @throws Refusal `budget_not_found` */
export async function showBudget(sql: Queryable, id: string): Promise<BudgetState> {
  const [row] = await sql<StateRow[]>`
    SELECT ${columns(sql)} FROM budgets AS b, budget_state(b, now_ms()) AS s WHERE b.id = ${id}`
  if (row === undefined) throw budgetNotFound(id)
  return toBudgetState(row)
}

export interface BudgetListing extends Listing {
  readonly scope?: BudgetScope | null
  /** Only those of this key. */
  readonly keyId?: string | null
  /** Those that cover the keys of this member. */
  readonly memberId?: string | null
}

/** Returns the budgets that an account pays for, the oldest first. */
export async function listBudgets(
  sql: Sql,
  accountId: string,
  { after = null, limit = null, scope = null, keyId = null, memberId = null }: BudgetListing = {},
): Promise<BudgetState[]> {
  const rows = await sql<StateRow[]>`
    SELECT ${columns(sql)}
    FROM budgets AS b, budget_state(b, now_ms()) AS s
    WHERE b.id IN (
      SELECT id FROM budgets
      WHERE account_id = ${accountId}
        ${after === null ? sql`` : sql`AND id > ${after}`}
        ${scope === null ? sql`` : sql`AND scope = ${scope}`}
        ${keyId === null ? sql`` : sql`AND subject_id = ${keyId}`}
        ${memberId === null ? sql`` : sql`AND (subject_id IN (${accountId}, ${memberId}) OR subject_id IN (SELECT key_id FROM grants WHERE account_id = ${accountId} AND member_id = ${memberId}))`}
      ORDER BY id LIMIT ${limit})
    ORDER BY b.id`
  if (rows.length === 0) await showAccount(sql, accountId)
  return rows.map(toBudgetState)
}

/** Deletes a budget, and what was counted. @throws Refusal `budget_not_found` */
export const deleteBudget = (sql: Sql, id: string): Promise<BudgetState> =>
  inTransaction(sql, async (transaction) => {
    await transaction`SELECT pg_advisory_xact_lock(${LOCKS.booking})`
    const budget = await showBudget(transaction, id)
    await transaction`DELETE FROM budgets WHERE id = ${id}`
    return budget
  })
