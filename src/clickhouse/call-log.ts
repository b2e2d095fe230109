/** The interface of the call log in ClickHouse, a projection of PostgreSQL's usage rows. */

import type { CallWithDetail } from '../../schemas/call-log/detail.ts'
import type { LogRow } from '../../schemas/call-log/row.ts'
import {
  type AccountMonth,
  type AuditCall,
  type AuditSum,
  bucketSums,
  type ComparedCalls,
  callsBetween,
  monthSums,
} from './audit/calls.ts'
import { type DayDifference, dayDifferences } from './audit/days.ts'
import { checkTables, commandOnCluster } from './cluster.ts'
import { asFailure, connect, isUnknownTable } from './connection.ts'
import { migrate } from './migrate.ts'
import { type CallQuery, findCall } from './pages/find-call.ts'
import { type CallPage, findCalls } from './pages/find-calls.ts'
import { type CallPositions, type CallsAtQuery, findCallsAt, listPositions } from './pages/list-positions.ts'
import type { CallPageQuery } from './pages/query.ts'
import { type CallSeriesPoint, type CallSeriesQuery, callSeries } from './summaries/call-series.ts'
import { type DailyUsage, type DailyUsageQuery, dailyUsage } from './summaries/daily-usage.ts'
import { type CallSummary, type CallSummaryQuery, summarizeCalls } from './summaries/summarize-calls.ts'
import { type CostSums, costsBy, type UsageByQuery, type UsageSums, usageBy } from './summaries/usage-by.ts'
import {
  costByDay,
  type DayCost,
  type UsageTotals,
  type UsageWindow,
  usageTotals,
} from './summaries/usage-totals.ts'
import { type CallRange, insertCalls } from './tables/insert-calls.ts'
import { readRetainedFrom } from './tables/marks.ts'
import { createRebuildTables, type RebuildTables } from './tables/rebuild.ts'
import { dropCallsBefore } from './tables/retention.ts'

export interface CallLog {
  /** Throws when ClickHouse does not answer. */
  ping(): Promise<void>
  /** Brings the tables up to date. All functions below do so before their first use. */
  migrate(): Promise<void>
  /**
   * Adds the range's rows; a range that is already present adds nothing. Resolves with the number of rows of the
   * range.
   */
  insertCalls(range: CallRange): Promise<number>
  /** @throws Failure `service_unavailable` while ClickHouse is away */
  findCalls(query: CallPageQuery, signal?: AbortSignal): Promise<CallPage>
  /** Returns the positions of a page's rows. @throws Failure `service_unavailable` while ClickHouse is away */
  listPositions(query: CallPageQuery, signal?: AbortSignal): Promise<CallPositions>
  /**
   * Returns the rows at these positions.
   * @throws Failure `service_unavailable` while ClickHouse is away
   */
  findCallsAt(query: CallsAtQuery, signal?: AbortSignal): Promise<LogRow[]>
  /**
   * Returns the call; null without one.
   * @throws Failure `service_unavailable` while ClickHouse is away
   */
  findCall(query: CallQuery, signal?: AbortSignal): Promise<CallWithDetail | null>
  /** @throws Failure `service_unavailable` while ClickHouse is away */
  summarizeCalls(query: CallSummaryQuery, signal?: AbortSignal): Promise<CallSummary>
  /** Counts, costs and latencies over time. @throws Failure `service_unavailable` while ClickHouse is away */
  callSeries(query: CallSeriesQuery, signal?: AbortSignal): Promise<CallSeriesPoint[]>
  /** @throws Failure `service_unavailable` while ClickHouse is away */
  dailyUsage(query: DailyUsageQuery, signal?: AbortSignal): Promise<DailyUsage[]>
  /** @throws Failure `service_unavailable` while ClickHouse is away */
  usageTotals(window: UsageWindow, signal?: AbortSignal): Promise<UsageTotals>
  /** @throws Failure `service_unavailable` while ClickHouse is away */
  costByDay(window: UsageWindow, signal?: AbortSignal): Promise<DayCost[]>
  /** @throws Failure `service_unavailable` while ClickHouse is away */
  usageBy(query: Parameters<typeof usageBy>[1], signal?: AbortSignal): Promise<UsageSums[]>
  /** @throws Failure `service_unavailable` while ClickHouse is away */
  costsBy(query: UsageByQuery, signal?: AbortSignal): Promise<CostSums[]>
  /**
   * Returns the sums of each month: one of the four queries of an audit. Each throws Failure `service_unavailable`
   * while ClickHouse is away.
   */
  monthSums(compared: ComparedCalls): Promise<(AccountMonth & AuditSum)[]>
  bucketSums(
    calls: AccountMonth,
    compared: ComparedCalls,
    bucketIds: number,
  ): Promise<(AuditSum & { bucket: bigint })[]>
  callsBetween(calls: AccountMonth, compared: ComparedCalls): Promise<AuditCall[]>
  dayDifferences(upto: bigint, since: Date | null): Promise<DayDifference[]>
  /** Returns an empty second log with its tables, which are created again where they were lost. */
  createRebuildTables(): Promise<RebuildTables>
  /** Drops the months that ended before this instant (epoch milliseconds) permanently, and returns them: `202601`. */
  dropCallsBefore(cutoffMs: number): Promise<string[]>
  /** Returns the instant before which the log has no ended calls, epoch milliseconds; 0: it has all. */
  retainedFrom(): Promise<number>
  close(): Promise<void>
}

/** The longest query. A frozen server accepts connections without answering, and readers would queue. */
const ANSWER_BOUND_MS = 10_000

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

/**
 * Opens nothing yet: ClickHouse may be away, now and at any time.
 * @param cluster name of the cluster whose servers all have the tables; null: they are on one server
 */
export function openCallLog(url: string, cluster: string | null = null): CallLog {
  const client = connect(url)
  if (cluster !== null) commandOnCluster(client, cluster)
  let migrated: Promise<unknown> | null = null

  const prepare = (): Promise<unknown> => {
    migrated ??= checkTables(client, cluster)
      .then(() => migrate(client))
      .catch((error: unknown) => {
        migrated = null
        throw error
      })
    return migrated
  }
  /**
   * Runs `work`; where tables are missing, creates them and runs it again: a server may have lost them, or be a new
   * one.
   */
  const prepared = async <T>(work: () => Promise<T>): Promise<T> => {
    await prepare()
    try {
      return await work()
    } catch (error) {
      if (!isUnknownTable(error)) throw error
      migrated = null
      await prepare()
      return work()
    }
  }

  /** Runs `work` for a client that waits: no longer than the bound, and not once `caller` has left. */
  const answering = async <T>(
    work: (signal: AbortSignal) => Promise<T>,
    caller: AbortSignal | undefined,
  ): Promise<T> => {
    const bound = AbortSignal.timeout(ANSWER_BOUND_MS)
    const signal = caller === undefined ? bound : AbortSignal.any([caller, bound])
    try {
      return await Promise.race([prepared(() => work(signal)), aborted(signal)])
    } catch (error) {
      throw asFailure(error)
    }
  }

  /** Runs `work` without a bound: no client waits for it. */
  const auditing = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await prepared(work)
    } catch (error) {
      throw asFailure(error)
    }
  }

  return {
    async ping() {
      const result = await client.ping({ select: true })
      if (!result.success) throw result.error
    },
    migrate: async () => {
      await prepare()
    },
    insertCalls: (range) => prepared(() => insertCalls(client, range)),
    findCalls: (query, caller) => answering((signal) => findCalls(client, query, signal), caller),
    listPositions: (query, caller) => answering((signal) => listPositions(client, query, signal), caller),
    findCallsAt: (query, caller) => answering((signal) => findCallsAt(client, query, signal), caller),
    findCall: (query, caller) => answering((signal) => findCall(client, query, signal), caller),
    summarizeCalls: (query, caller) => answering((signal) => summarizeCalls(client, query, signal), caller),
    callSeries: (query, caller) => answering((signal) => callSeries(client, query, signal), caller),
    dailyUsage: (query, caller) => answering((signal) => dailyUsage(client, query, signal), caller),
    usageTotals: (window, caller) => answering((signal) => usageTotals(client, window, signal), caller),
    costByDay: (window, caller) => answering((signal) => costByDay(client, window, signal), caller),
    usageBy: (query, caller) => answering((signal) => usageBy(client, query, signal), caller),
    costsBy: (query, caller) => answering((signal) => costsBy(client, query, signal), caller),
    monthSums: (compared) => auditing(() => monthSums(client, compared)),
    bucketSums: (calls, compared, bucketIds) =>
      auditing(() => bucketSums(client, calls, compared, bucketIds)),
    callsBetween: (calls, compared) => auditing(() => callsBetween(client, calls, compared)),
    dayDifferences: (upto, since) => auditing(() => dayDifferences(client, upto, since)),
    async createRebuildTables() {
      await prepare()
      return createRebuildTables(client)
    },
    dropCallsBefore: (cutoffMs) => prepared(() => dropCallsBefore(client, cutoffMs)),
    retainedFrom: () => auditing(() => readRetainedFrom(client)),
    close: () => client.close(),
  }
}
