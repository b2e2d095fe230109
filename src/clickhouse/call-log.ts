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
import type {
  CallPageQuery,
  InstallationFilter,
  InstallationPageQuery,
} from '../../schemas/call-log/page-query.ts'
import type { LoggedCall } from '../../schemas/call-log/unbooked.ts'
import type { UsageGroup } from '../../schemas/management/calls/usage.ts'
import type { LogWindow } from '../core/call-log/window.ts'
import { bucketSums, listCallsBetween, sumMonths } from './audit/calls.ts'
import { compareDays, type DayDifference } from './audit/days.ts'
import { type CallsQuery, listLoggedCalls, readLoggedSettlements } from './audit/logged-calls.ts'
import { checkTables, commandOnCluster } from './cluster.ts'
import { connect, isUnknownTable, toFailure } from './connection.ts'
import { migrate } from './migrate.ts'
import { type CallQuery, findCall } from './pages/find-call.ts'
import { type CallPage, findCalls } from './pages/find-calls.ts'
import { findInstallationCalls, type InstallationCallPage } from './pages/find-installation-calls.ts'
import { type CallPositions, type CallsAtQuery, findCallsAt, listPositions } from './pages/list-positions.ts'
import { type CallSeriesPoint, type CallSeriesQuery, callSeries } from './summaries/call-series.ts'
import { type CallValues, listCallValues } from './summaries/call-values.ts'
import { type ChannelHealth, type ChannelHealthQuery, readChannelHealth } from './summaries/channel-health.ts'
import { type DailyQuery, type DailyUsage, sumUsageByDay } from './summaries/daily-usage.ts'
import {
  type ModelDay,
  type ModelOutcomes,
  readModelOutcomes,
  sumModelDays,
} from './summaries/model-status.ts'
import { type CallSummary, summarizeCalls } from './summaries/summarize-calls.ts'
import type { AccountWindow, CallSums } from './summaries/summed-rows.ts'
import {
  type CostSums,
  sumCostsByGroup,
  sumUsageByGroup,
  type UsageByQuery,
  type UsageSums,
} from './summaries/usage-by.ts'
import { type SessionUsage, sumUsageBySession } from './summaries/usage-by-session.ts'
import { type DayCost, sumCostByDay, sumUsage, type UsageWindow } from './summaries/usage-totals.ts'
import { type CallRange, insertCalls } from './tables/insert-calls.ts'
import { readRetainedFrom } from './tables/marks.ts'
import { createRebuildTables, type RebuildTables } from './tables/rebuild.ts'
import { dropCallsBefore } from './tables/retention.ts'

/** Rows that a client reads. Each query ends with `caller`. */
export interface CallPages {
  findCalls(query: CallPageQuery, caller?: AbortSignal): Promise<CallPage>
  listPositions(query: CallPageQuery, caller?: AbortSignal): Promise<CallPositions>
  findCallsAt(query: CallsAtQuery, caller?: AbortSignal): Promise<LogRow[]>
  findInstallationCalls(query: InstallationPageQuery, caller?: AbortSignal): Promise<InstallationCallPage>
  findCall(query: CallQuery, caller?: AbortSignal): Promise<CallWithDetail | null>
}

/** Sums that a client reads. Each query ends with `caller`. */
/** How the calls of each model ended. */
export interface ModelSummaries {
  readModelOutcomes(window: LogWindow, caller?: AbortSignal): Promise<ModelOutcomes[]>
  sumModelDays(window: LogWindow, caller?: AbortSignal): Promise<ModelDay[]>
}

export interface CallSummaries extends ModelSummaries {
  summarizeCalls(window: AccountWindow, caller?: AbortSignal): Promise<CallSummary>
  callSeries(query: CallSeriesQuery, caller?: AbortSignal): Promise<CallSeriesPoint[]>
  listCallValues(query: InstallationFilter, caller?: AbortSignal): Promise<CallValues>
  readChannelHealth(query: ChannelHealthQuery, caller?: AbortSignal): Promise<ChannelHealth[]>
  sumUsageByDay(query: DailyQuery, caller?: AbortSignal): Promise<DailyUsage[]>
  sumUsage(window: UsageWindow, caller?: AbortSignal): Promise<CallSums>
  sumCostByDay(window: AccountWindow, caller?: AbortSignal): Promise<DayCost[]>
  sumUsageByGroup(
    query: UsageByQuery & { readonly by: Exclude<UsageGroup, 'channel'> },
    caller?: AbortSignal,
  ): Promise<UsageSums[]>
  sumCostsByGroup(query: UsageByQuery, caller?: AbortSignal): Promise<CostSums[]>
  sumUsageBySession(
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
  listLoggedCalls(query: CallsQuery): Promise<LoggedCall[]>
  readLoggedSettlements(calls: readonly LoggedCall[]): Promise<Settlement[]>
  readRetainedFrom(): Promise<number>
  sumMonths(compared: ComparedCalls): Promise<MonthSum[]>
  bucketSums(month: MonthCalls, compared: ComparedCalls, bucketIds: number): Promise<BucketSum[]>
  listCallsBetween(month: MonthCalls, compared: ComparedCalls): Promise<AuditedCall[]>
  compareDays(upto: bigint, since: Date | null): Promise<DayDifference[]>
}

/** Throws Failure `service_unavailable` from each query while ClickHouse is down. */
export interface CallLog extends CallPages, CallSummaries, CallTables, CallAudit {
  /** Throws when ClickHouse does not answer. */
  ping(): Promise<void>
  /** Brings the tables up to date. All other functions do so before their first use. */
  migrate(): Promise<void>
  close(): Promise<void>
}

/** The longest query. A frozen server accepts connections without answering, and readers would queue. */
const ANSWER_BOUND_MS = 10_000

const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
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
  const runPrepared = async <T>(work: () => Promise<T>): Promise<T> => {
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
  const bindAudit =
    <Args extends unknown[], Answer>(work: (client: ClickHouseClient, ...args: Args) => Promise<Answer>) =>
    async (...args: Args): Promise<Answer> => {
      try {
        return await runPrepared(() => work(client, ...args))
      } catch (error) {
        throw toFailure(error)
      }
    }

  /** Binds a query that a client waits for: it ends at the bound, and once `caller` has left. */
  const bindQuery =
    <Query, Answer>(work: (client: ClickHouseClient, query: Query, signal: AbortSignal) => Promise<Answer>) =>
    async (query: Query, caller?: AbortSignal): Promise<Answer> => {
      const bound = AbortSignal.timeout(ANSWER_BOUND_MS)
      const signal = caller === undefined ? bound : AbortSignal.any([caller, bound])
      try {
        return await Promise.race([runPrepared(() => work(client, query, signal)), rejectOnAbort(signal)])
      } catch (error) {
        throw toFailure(error)
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
    insertCalls: (range: CallRange) => runPrepared(() => insertCalls(client, range)),
    createRebuildTables: async () => {
      await prepare()
      return createRebuildTables(client)
    },
    dropCallsBefore: (cutoffMs: number) => runPrepared(() => dropCallsBefore(client, cutoffMs)),
    findCalls: bindQuery(findCalls),
    listPositions: bindQuery(listPositions),
    findCallsAt: bindQuery(findCallsAt),
    findInstallationCalls: bindQuery(findInstallationCalls),
    findCall: bindQuery(findCall),
    summarizeCalls: bindQuery(summarizeCalls),
    callSeries: bindQuery(callSeries),
    listCallValues: bindQuery(listCallValues),
    readChannelHealth: bindQuery(readChannelHealth),
    readModelOutcomes: bindQuery(readModelOutcomes),
    sumModelDays: bindQuery(sumModelDays),
    sumUsageByDay: bindQuery(sumUsageByDay),
    sumUsage: bindQuery(sumUsage),
    sumCostByDay: bindQuery(sumCostByDay),
    sumUsageByGroup: bindQuery(sumUsageByGroup),
    sumCostsByGroup: bindQuery(sumCostsByGroup),
    sumUsageBySession: bindQuery(sumUsageBySession),
    listLoggedCalls: bindAudit(listLoggedCalls),
    readLoggedSettlements: bindAudit(readLoggedSettlements),
    readRetainedFrom: bindAudit(readRetainedFrom),
    sumMonths: bindAudit(sumMonths),
    bucketSums: bindAudit(bucketSums),
    listCallsBetween: bindAudit(listCallsBetween),
    compareDays: bindAudit(compareDays),
    close: () => client.close(),
  }
}
