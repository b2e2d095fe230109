/** The interface of the call log in ClickHouse, a projection of PostgreSQL's usage rows. */
import type { ClickHouseClient } from '@clickhouse/client'
import type {
  AuditedCall,
  BucketSum,
  ComparedCalls,
  MonthCalls,
  MonthSum,
} from '../../schemas/call-log/audit.ts'
import type { LogRow, Settlement } from '../../schemas/call-log/columns.ts'
import type { CallWithDetail } from '../../schemas/call-log/detail.ts'
import type { LoggedCall } from '../../schemas/call-log/unbooked.ts'
import type { UsageGroup } from '../../schemas/management/calls/usage.ts'
import { bucketSums, callsBetween, monthSums } from './audit/calls.ts'
import { type DayDifference, dayDifferences } from './audit/days.ts'
import { type CallsQuery, loggedCalls, loggedSettlements } from './audit/logged-calls.ts'
import { checkTables, commandOnCluster } from './cluster.ts'
import { asFailure, connect, isUnknownTable } from './connection.ts'
import { migrate } from './migrate.ts'
import { type CallQuery, findCall } from './pages/find-call.ts'
import { type CallPage, findCalls } from './pages/find-calls.ts'
import { type CallPositions, type CallsAtQuery, findCallsAt, listPositions } from './pages/list-positions.ts'
import type { CallPageQuery } from './pages/query.ts'
import { type CallSeriesPoint, type CallSeriesQuery, callSeries } from './summaries/call-series.ts'
import { type DailyGroup, type DailyUsage, dailyUsage } from './summaries/daily-usage.ts'
import { type CallSummary, summarizeCalls } from './summaries/summarize-calls.ts'
import type { AccountWindow, CallSums } from './summaries/summed-rows.ts'
import { type CostSums, costsBy, type UsageByQuery, type UsageSums, usageBy } from './summaries/usage-by.ts'
import { type SessionUsage, usageBySession } from './summaries/usage-by-session.ts'
import { costByDay, type DayCost, usageTotals } from './summaries/usage-totals.ts'
import { type CallRange, insertCalls } from './tables/insert-calls.ts'
import { readRetainedFrom } from './tables/marks.ts'
import { createRebuildTables, type RebuildTables } from './tables/rebuild.ts'
import { dropCallsBefore } from './tables/retention.ts'

/** Rows that a client reads. Each query ends with `caller`. */
export interface CallPages {
  findCalls(query: CallPageQuery, caller?: AbortSignal): Promise<CallPage>
  listPositions(query: CallPageQuery, caller?: AbortSignal): Promise<CallPositions>
  findCallsAt(query: CallsAtQuery, caller?: AbortSignal): Promise<LogRow[]>
  findCall(query: CallQuery, caller?: AbortSignal): Promise<CallWithDetail | null>
}

/** Sums that a client reads. Each query ends with `caller`. */
export interface CallSummaries {
  summarizeCalls(window: AccountWindow, caller?: AbortSignal): Promise<CallSummary>
  callSeries(query: CallSeriesQuery, caller?: AbortSignal): Promise<CallSeriesPoint[]>
  dailyUsage(query: AccountWindow & { readonly by: DailyGroup }, caller?: AbortSignal): Promise<DailyUsage[]>
  usageTotals(window: AccountWindow, caller?: AbortSignal): Promise<CallSums>
  costByDay(window: AccountWindow, caller?: AbortSignal): Promise<DayCost[]>
  usageBy(
    query: UsageByQuery & { readonly by: Exclude<UsageGroup, 'channel'> },
    caller?: AbortSignal,
  ): Promise<UsageSums[]>
  costsBy(query: UsageByQuery, caller?: AbortSignal): Promise<CostSums[]>
  usageBySession(
    query: AccountWindow & { readonly limit: number },
    caller?: AbortSignal,
  ): Promise<SessionUsage[]>
}

/** What fills, rebuilds and prunes the log. */
export interface CallTables {
  /** Adds the range's rows; a range that is already present adds nothing. Returns the number of rows of the range. */
  insertCalls(range: CallRange): Promise<number>
  createRebuildTables(): Promise<RebuildTables>
  dropCallsBefore(cutoffMs: number): Promise<string[]>
}

/** What compares the log with the books. */
export interface CallAudit {
  loggedCalls(query: CallsQuery): Promise<LoggedCall[]>
  loggedSettlements(calls: readonly LoggedCall[]): Promise<Settlement[]>
  retainedFrom(): Promise<number>
  monthSums(compared: ComparedCalls): Promise<MonthSum[]>
  bucketSums(month: MonthCalls, compared: ComparedCalls, bucketIds: number): Promise<BucketSum[]>
  callsBetween(month: MonthCalls, compared: ComparedCalls): Promise<AuditedCall[]>
  dayDifferences(upto: bigint, since: Date | null): Promise<DayDifference[]>
}

/** Throws Failure `service_unavailable` from each query while ClickHouse is away. */
export interface CallLog extends CallPages, CallSummaries, CallTables, CallAudit {
  /** Throws when ClickHouse does not answer. */
  ping(): Promise<void>
  /** Brings the tables up to date. All other functions do so before their first use. */
  migrate(): Promise<void>
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

  /** Binds a query that no client waits for: it may take any time. */
  const auditing =
    <Args extends unknown[], Answer>(work: (client: ClickHouseClient, ...args: Args) => Promise<Answer>) =>
    async (...args: Args): Promise<Answer> => {
      try {
        return await prepared(() => work(client, ...args))
      } catch (error) {
        throw asFailure(error)
      }
    }

  /** Binds a query that a client waits for: it ends at the bound, and once `caller` has left. */
  const answering =
    <Query, Answer>(work: (client: ClickHouseClient, query: Query, signal: AbortSignal) => Promise<Answer>) =>
    async (query: Query, caller?: AbortSignal): Promise<Answer> => {
      const bound = AbortSignal.timeout(ANSWER_BOUND_MS)
      const signal = caller === undefined ? bound : AbortSignal.any([caller, bound])
      try {
        return await Promise.race([prepared(() => work(client, query, signal)), aborted(signal)])
      } catch (error) {
        throw asFailure(error)
      }
    }

  return {
    ping: async () => {
      const result = await client.ping({ select: true })
      if (!result.success) throw result.error
    },
    migrate: async () => {
      await prepare()
    },
    insertCalls: (range: CallRange) => prepared(() => insertCalls(client, range)),
    createRebuildTables: async () => {
      await prepare()
      return createRebuildTables(client)
    },
    dropCallsBefore: (cutoffMs: number) => prepared(() => dropCallsBefore(client, cutoffMs)),
    findCalls: answering(findCalls),
    listPositions: answering(listPositions),
    findCallsAt: answering(findCallsAt),
    findCall: answering(findCall),
    summarizeCalls: answering(summarizeCalls),
    callSeries: answering(callSeries),
    dailyUsage: answering(dailyUsage),
    usageTotals: answering(usageTotals),
    costByDay: answering(costByDay),
    usageBy: answering(usageBy),
    costsBy: answering(costsBy),
    usageBySession: answering(usageBySession),
    loggedCalls: auditing(loggedCalls),
    loggedSettlements: auditing(loggedSettlements),
    retainedFrom: auditing(readRetainedFrom),
    monthSums: auditing(monthSums),
    bucketSums: auditing(bucketSums),
    callsBetween: auditing(callsBetween),
    dayDifferences: auditing(dayDifferences),
    close: () => client.close(),
  }
}
