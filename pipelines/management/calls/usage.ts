/** Operations that sum up the calls of an account. */
import { Failure } from '../../../schemas/failure.ts'
import {
  showHome,
  showUsage,
  sumSessions,
  type USAGE_DIMENSIONS,
} from '../../../schemas/management/calls/usage.ts'
import { type Credits, printCredits } from '../../../schemas/money.ts'
import type { CallSummaries } from '../../../src/clickhouse/call-log.ts'
import type { DailyGroup, DailyUsage } from '../../../src/clickhouse/summaries/daily-usage.ts'
import { DAY_MS, type LogWindow } from '../../../src/core/call-log/window.ts'
import { addAllSums, printSums } from '../../call-log/sums.ts'
import { printWindow, resolveWindow } from '../../calls/query.ts'
import { budgetShape, isNearlySpent } from '../accounts/budgets.ts'
import { findMember } from '../caller.ts'
import { type Context, implementWith } from '../operation.ts'
import { keyShape, printInstant, walletShape } from '../shapes.ts'
import { listVisibleKeys } from './calls.ts'

export interface UsageServices {
  readonly callLog: CallSummaries
}

type Dimension = (typeof USAGE_DIMENSIONS)[number]

const MAX_DAYS = 365
const HOME_DAYS = 30
/** Share of a spend cap from which a key is near it. */
const NEAR_CAP_PERCENT = 80n
const MAX_NEAR_CAP = 100
/** Keys that no member holds. */
const NO_MEMBER = ''

const COLUMN_OF: Readonly<Record<Dimension, DailyGroup>> = {
  model: 'model',
  key: 'key_id',
  member: 'key_id',
  status: 'status',
}

const compareCosts = (a: { readonly cost: Credits }, b: { readonly cost: Credits }): number =>
  a.cost === b.cost ? 0 : a.cost > b.cost ? -1 : 1

interface Names {
  /** Returns the group of a row. */
  readGroup(row: DailyUsage): string
  /** Returns the name of a group. */
  findName(group: string): string
}

/** Names keys, and the members who hold them; models and states are their own names. */
async function readNames({ database }: Context, by: Dimension, rows: readonly DailyUsage[]): Promise<Names> {
  if (by === 'model' || by === 'status')
    return { readGroup: ({ group }) => group, findName: (group) => group }
  const keys = await database.keys.readNamed([...new Set(rows.map(({ group }) => group))])
  if (by === 'key')
    return { readGroup: ({ group }) => group, findName: (group) => keys.get(group)?.name ?? group }
  const names = await database.accounts.readNames(
    [...keys.values()].flatMap(({ memberId }) => memberId ?? []),
  )
  return {
    readGroup: ({ group }) => keys.get(group)?.memberId ?? NO_MEMBER,
    findName: (group) => names.get(group) ?? group,
  }
}

/** Adds up the rows of one day and group. */
function regroup(rows: readonly DailyUsage[], readGroup: Names['readGroup']): DailyUsage[] {
  const groups = Map.groupBy(rows, (row) => `${row.day} ${readGroup(row)}`)
  return [...groups.values()].map((same) => ({
    day: same[0]!.day,
    group: readGroup(same[0]!),
    ...addAllSums(same),
  }))
}

/** Returns the window of a report. @throws Failure `invalid_request` */
function reportWindow(input: Parameters<typeof resolveWindow>[0], now: number): LogWindow {
  const { from, to } = resolveWindow(input, '30d', now)
  const window = { from, to: Math.min(to, now) }
  if (window.to - from > MAX_DAYS * DAY_MS)
    throw new Failure('invalid_request', `Parameter from: a report is of at most ${MAX_DAYS} days.`)
  return window
}

const RATE_DAYS = 7

interface SpendRate {
  readonly perDay: Credits
  /** Days before today of which `perDay` is the mean; 0: it is what today has cost so far. */
  readonly days: number
}

interface DayCost {
  /** `2026-01-31`. */
  readonly day: string
  readonly cost: Credits
}

const toDay = (epochMs: number, timezone: string): string =>
  new Date(epochMs).toLocaleDateString('sv-SE', { timeZone: timezone })

/** Returns the day a number of days earlier. */
const goBack = (day: string, days: number): string => toDay(Date.parse(day) - days * DAY_MS, 'UTC')

/**
 * Returns the mean of the last seven days, or of those since the first day with a cost where they are fewer: a new account
 * has no days to divide by. Today is not over, so it counts only where the days before it cost nothing.
 * @param today such as `2026-01-31`
 */
export function spendRate(rows: readonly DayCost[], today: string): SpendRate {
  const week = goBack(today, RATE_DAYS)
  const sumCosts = (days: readonly DayCost[]) => days.reduce((sum, { cost }) => sum + cost, 0n)
  const spent = sumCosts(rows.filter(({ day }) => day >= week && day < today))
  if (spent === 0n) return { perDay: sumCosts(rows.filter(({ day }) => day === today)), days: 0 }
  const first = rows.reduce((least, { day, cost }) => (cost > 0n && day < least ? day : least), today)
  const days = Math.min(RATE_DAYS, Math.round((Date.parse(today) - Date.parse(first)) / DAY_MS))
  return { perDay: spent / BigInt(days), days }
}

/** Returns how many days the balance lasts; null where nothing is spent. */
export const runwayDays = (balance: Credits, { perDay }: SpendRate): number | null =>
  perDay > 0n ? Math.max(0, Number((balance * 10n) / perDay) / 10) : null

const implement = implementWith<UsageServices>()

export const usageOperations = [
  implement(showUsage, async (context, input, { callLog }) => {
    const { account_id: accountId, by } = input
    // Operators may name any account.
    await context.database.accounts.show(accountId)
    const keyIds = await listVisibleKeys(context, accountId, input.key_id)
    const window = reportWindow(input, context.now)
    const find = (of: LogWindow) =>
      callLog.sumUsageByDay({ accountId, keyIds, by: COLUMN_OF[by], timezone: input.timezone, ...of })
    const length = window.to - window.from
    const [rows, before] = await Promise.all([
      find(window),
      find({ from: window.from - length, to: window.from }),
    ])
    const { readGroup, findName } = await readNames(context, by, rows)
    const daily = regroup(rows, readGroup)
    const groups = [...Map.groupBy(daily, ({ group }) => group)].map(([id, same]) => ({
      id,
      ...addAllSums(same),
    }))
    return {
      ...printWindow(window),
      total: printSums(addAllSums(daily)),
      before: printSums(addAllSums(before)),
      groups: groups
        .toSorted(compareCosts)
        .map((sums) => ({ id: sums.id, name: findName(sums.id), ...printSums(sums) })),
      by_day: daily.map((sums) => ({ date: sums.day, group: sums.group, ...printSums(sums) })),
    }
  }),
  implement(sumSessions, async (context, { account_id: accountId, key_id, limit, ...input }, { callLog }) => {
    await context.database.accounts.show(accountId)
    const keyIds = await listVisibleKeys(context, accountId, key_id)
    const window = reportWindow(input, context.now)
    const found = await callLog.sumUsageBySession({ accountId, keyIds, ...window, limit: limit + 1 })
    return {
      ...printWindow(window),
      data: found.slice(0, limit).map((session) => ({
        session_id: session.sessionId,
        models: [...session.models],
        ...printSums(session),
        first_call_at: printInstant(session.firstAt),
        last_call_at: printInstant(session.lastAt),
      })),
      has_more: found.length > limit,
    }
  }),
  implement(showHome, async (context, { account_id: accountId, timezone }, { callLog }) => {
    const { database, now, caller } = context
    const today = toDay(now, timezone)
    const firstDay = goBack(today, HOME_DAYS)
    // The first day may begin up to a day earlier than in UTC.
    const window = { from: Date.parse(firstDay) - DAY_MS, to: now }
    const memberId = findMember(caller, accountId)
    const keyIds = await listVisibleKeys(context, accountId)
    const [{ wallet }, nearCap, budgets, all] = await Promise.all([
      database.accounts.show(accountId),
      database.keys.listNearCap(accountId, { memberId, percent: NEAR_CAP_PERCENT, limit: MAX_NEAR_CAP }),
      database.budgets.list(accountId, { memberId }),
      callLog.sumUsageByDay({ accountId, keyIds, by: 'status', timezone, ...window }),
    ])
    const rows = all.filter(({ day }) => day >= firstDay)
    const rate = spendRate(rows, today)
    const days = [...Map.groupBy(rows, ({ day }) => day)]
    return {
      wallet: memberId === null ? walletShape(wallet) : null,
      spend_per_day: printCredits(rate.perDay),
      spend_days: rate.days,
      runway_days: memberId === null ? runwayDays(wallet.balance, rate) : null,
      by_day: days.map(([date, same]) => ({
        date,
        requests: addAllSums(same).requests,
        failed: addAllSums(same.filter(({ group }) => group !== 'success')).requests,
        cost: printCredits(addAllSums(same).cost),
      })),
      keys_near_cap: nearCap.map(keyShape),
      budgets_near: budgets.filter(isNearlySpent).map(budgetShape),
    }
  }),
]
