/**
 * Compares the call log with the usage rows that it is a copy of: by account and month, which finds whether they
 * differ; where they do, by ranges of ids and at last call by call, which finds the difference. Copied rows never
 * change: only the sums need to be of one instant with the mark up to which rows are copied.
 */
import type {
  AuditedCall,
  BucketSum,
  CallSum,
  ComparedCalls,
  MonthCalls,
  MonthSum,
} from '../../../schemas/call-log/audit.ts'
import { FIRST_LOG_INSTANT_MS, LAST_LOG_INSTANT_MS } from '../../../schemas/call-log/usage-row.ts'
import { printCredits } from '../../../schemas/money.ts'
import type { Queryable } from '../connection.ts'
import { type AuditScope, firstId, MAX_DIFFERENCES_PER_KIND } from './audit-checks.ts'
import type { AuditedLog, Difference } from './audit-report.ts'

/** The most months of accounts in which calls are compared one by one, and the most ranges of each. */
const MAX_NAMED_MONTHS = 20
const MAX_NAMED_BUCKETS = 20
/** Ids follow the clock in microseconds: ten seconds of calls. */
const BUCKET_IDS = 10_000_000

const MS_PER_DAY = 24 * 60 * 60 * 1000

interface CopiedCalls {
  readonly compared: ComparedCalls
  readonly since: Date | null
  readonly sums: readonly MonthSum[]
}

/** Sums as text: they do not fit a BIGINT. */
interface SumRow {
  readonly rows: bigint
  readonly ids: string
  readonly cost: string
}

const toSum = ({ rows, ids, cost }: SumRow): CallSum => ({ rows, ids: BigInt(ids), cost: BigInt(cost) })

const SUMS = 'count(*) AS rows, sum(id)::text AS ids, sum(cost)::text AS cost'
/** The instant that the call log has. */
const LOGGED_AT = `least(greatest(created_at, ${FIRST_LOG_INSTANT_MS}), ${LAST_LOG_INSTANT_MS})`

/** Returns the rows that the call log must have: of those that the audit reads, those copied permanently. */
export async function readCopied(sql: Queryable, scope: AuditScope): Promise<CopiedCalls> {
  const [mark] = await sql<[{ copied_upto: bigint; kept_since: Date | null }]>`
    SELECT copied_upto, kept_since('usage_rows') AS kept_since FROM usage_copy`
  const from = firstId(scope)
  // By day first: to print the month of every row would take longer than all the rest.
  const sums = await sql<(SumRow & { account_id: string; month: string })[]>`
    SELECT account_id, to_char(timestamp 'epoch' + interval '1 day' * day, 'YYYYMM') AS month,
      sum(rows)::bigint AS rows, sum(ids)::text AS ids, sum(cost)::text AS cost
    FROM (
      SELECT account_id, ${sql.unsafe(LOGGED_AT)} / ${MS_PER_DAY}::bigint AS day,
        count(*) AS rows, sum(id) AS ids, sum(cost) AS cost
      FROM usage_rows WHERE id >= ${from} AND id <= ${mark.copied_upto} GROUP BY 1, 2
    ) AS days
    GROUP BY 1, 2`
  return {
    compared: { from, upto: mark.copied_upto, admittedSince: mark.kept_since?.getTime() ?? 0 },
    since: scope.since,
    sums: sums.map(({ account_id, month, ...sum }) => ({ accountId: account_id, month, ...toSum(sum) })),
  }
}

/** @throws Failure `service_unavailable` while the call log is down */
export async function compareLog(
  sql: Queryable,
  copied: CopiedCalls,
  log: AuditedLog,
): Promise<Difference[]> {
  const { compared } = copied
  const inLog = await log.sumMonths(compared)
  // Read second: it includes a month that was dropped meanwhile.
  const isKept = isKeptSince(await log.readRetainedFrom())
  const [booked, logged] = [copied.sums.filter(isKept), inLog.filter(isKept)]
  const months = findDifferingSums(
    booked,
    logged,
    ({ accountId, month }) => `${accountId} ${month}`,
  ).toSorted((a, b) => compare(a.accountId, b.accountId) || compare(a.month, b.month))
  const named: Difference[] = []
  for (const month of months.slice(0, MAX_NAMED_MONTHS))
    named.push(...(await compareMonth({ sql, log, compared }, month)))
  const days = await log.compareDays(compared.upto, copied.since)
  return [
    ...compareAccountTotals(booked, logged, new Set(months.map(({ accountId }) => accountId))),
    ...capDifferences(named),
    ...capDifferences(days.filter(({ ref }) => isKept({ month: toMonth(ref) }))),
  ]
}

const isKeptSince = (epochMs: number) => {
  const firstMonth = new Date(epochMs).toISOString().slice(0, 7).replace('-', '')
  return ({ month }: Pick<MonthCalls, 'month'>): boolean => month >= firstMonth
}

/** Returns `202601` for `2026-01-31`. */
const toMonth = (day = ''): string => day.slice(0, 7).replace('-', '')

function capDifferences(differences: readonly Difference[]): Difference[] {
  const byKind = Map.groupBy(differences, ({ kind }) => kind)
  return [...byKind.values()].flatMap((some) => some.slice(0, MAX_DIFFERENCES_PER_KIND))
}

const NOTHING: CallSum = { rows: 0n, ids: 0n, cost: 0n }

const isSame = (one: CallSum, other: CallSum): boolean =>
  one.rows === other.rows && one.ids === other.ids && one.cost === other.cost

const compare = <T extends string | bigint>(one: T, other: T): number =>
  one < other ? -1 : one > other ? 1 : 0

/** Returns the sums, of either side, for whose key the other side has another sum. */
function findDifferingSums<Sum extends CallSum>(
  booked: readonly Sum[],
  logged: readonly Sum[],
  toKey: (sum: Sum) => string | bigint,
): Sum[] {
  const ours = new Map(booked.map((sum) => [toKey(sum), sum]))
  const theirs = new Map(logged.map((sum) => [toKey(sum), sum]))
  return [...new Map([...ours, ...theirs])]
    .filter(([key]) => !isSame(ours.get(key) ?? NOTHING, theirs.get(key) ?? NOTHING))
    .map(([, sum]) => sum)
}

function compareAccountTotals(
  booked: readonly MonthSum[],
  logged: readonly MonthSum[],
  accountIds: ReadonlySet<string>,
): Difference[] {
  const addUp = (sums: readonly MonthSum[], part: (sum: CallSum) => bigint, accountId: string): bigint =>
    sums.reduce((total, sum) => (sum.accountId === accountId ? total + part(sum) : total), 0n)
  const compareCounted = (kind: 'log_rows' | 'log_cost', part: (sum: CallSum) => bigint) => {
    const print = (value: bigint): string => (kind === 'log_cost' ? printCredits(value) : String(value))
    return [...accountIds].slice(0, MAX_DIFFERENCES_PER_KIND).flatMap((account_id): Difference[] => {
      const [expected, found] = [addUp(booked, part, account_id), addUp(logged, part, account_id)]
      return expected === found ? [] : [{ account_id, kind, expected: print(expected), found: print(found) }]
    })
  }
  return [
    ...compareCounted('log_rows', ({ rows }) => rows),
    ...compareCounted('log_cost', ({ cost }) => cost),
  ]
}

interface BothSides {
  readonly sql: Queryable
  readonly log: AuditedLog
  readonly compared: ComparedCalls
}

async function compareMonth({ sql, log, compared }: BothSides, calls: MonthCalls): Promise<Difference[]> {
  const booked = await sumBookedBuckets(sql, calls, compared)
  const logged = await log.bucketSums(calls, compared, BUCKET_IDS)
  const buckets = findDifferingSums(booked, logged, ({ bucket }) => bucket)
    .map(({ bucket }) => bucket)
    .toSorted(compare)
  const found: Difference[] = []
  for (const bucket of buckets.slice(0, MAX_NAMED_BUCKETS)) {
    const first = bucket * BigInt(BUCKET_IDS)
    const last = first + BigInt(BUCKET_IDS) - 1n
    const some = {
      ...compared,
      from: first > compared.from ? first : compared.from,
      upto: last < compared.upto ? last : compared.upto,
    }
    found.push(
      ...compareCalls(
        calls.accountId,
        await listBookedBetween(sql, calls, some),
        await log.listCallsBetween(calls, some),
      ),
    )
  }
  return found
}

function compareCalls(
  account_id: string,
  booked: readonly AuditedCall[],
  logged: readonly AuditedCall[],
): Difference[] {
  const theirs = Map.groupBy(logged, ({ id }) => id)
  const known = new Set(booked.map(({ id }) => id))
  const ofBooked = booked.flatMap(({ id, requestId: ref, cost }): Difference[] => {
    const copies = theirs.get(id) ?? []
    if (copies.length === 0) return [{ account_id, kind: 'log_missing', ref, expected: '1', found: '0' }]
    if (copies.length > 1)
      return [{ account_id, kind: 'log_doubled', ref, expected: '1', found: String(copies.length) }]
    const found = copies[0]!.cost
    if (found === cost) return []
    return [
      { account_id, kind: 'log_call_cost', ref, expected: printCredits(cost), found: printCredits(found) },
    ]
  })
  const unknown = [...theirs].flatMap(([id, copies]): Difference[] => {
    if (known.has(id)) return []
    const ref = copies[0]!.requestId
    return [{ account_id, kind: 'log_unknown', ref, expected: '0', found: String(copies.length) }]
  })
  return [...ofBooked, ...unknown]
}

/** Returns the instants at which the month `202601` begins and ends. */
function toWindow(month: string): { from: number; to: number } {
  const [year, index] = [Number(month.slice(0, 4)), Number(month.slice(4)) - 1]
  return { from: Date.UTC(year, index), to: Date.UTC(year, index + 1) }
}

const isInMonth = (sql: Queryable, { accountId, month }: MonthCalls) => {
  const { from, to } = toWindow(month)
  const loggedAt = sql.unsafe(LOGGED_AT)
  return sql`account_id = ${accountId} AND ${loggedAt} >= ${from} AND ${loggedAt} < ${to}`
}

async function sumBookedBuckets(
  sql: Queryable,
  calls: MonthCalls,
  { from, upto }: ComparedCalls,
): Promise<BucketSum[]> {
  const rows = await sql<(SumRow & { bucket: bigint })[]>`
    SELECT id / ${BUCKET_IDS} AS bucket, ${sql.unsafe(SUMS)} FROM usage_rows
    WHERE id >= ${from} AND id <= ${upto} AND ${isInMonth(sql, calls)} GROUP BY 1`
  return rows.map(({ bucket, ...sum }) => ({ bucket, ...toSum(sum) }))
}

async function listBookedBetween(
  sql: Queryable,
  calls: MonthCalls,
  { from, upto }: ComparedCalls,
): Promise<AuditedCall[]> {
  const rows = await sql<{ id: bigint; request_id: string; cost: bigint }[]>`
    SELECT id, request_id, cost FROM usage_rows
    WHERE id BETWEEN ${from} AND ${upto} AND ${isInMonth(sql, calls)} ORDER BY id`
  return rows.map(({ id, request_id, cost }) => ({ id, requestId: request_id, cost }))
}
