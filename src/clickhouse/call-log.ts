/** The interface of the call log in ClickHouse, a projection of PostgreSQL's usage rows. */
import type { ClickHouseClient } from '@clickhouse/client'
import { bucketSums, callsBetween, monthSums } from './audit/calls.ts'
import { dayDifferences } from './audit/days.ts'
import { loggedCalls, loggedSettlements } from './audit/logged-calls.ts'
import { checkTables, commandOnCluster } from './cluster.ts'
import { asFailure, connect, isUnknownTable } from './connection.ts'
import { migrate } from './migrate.ts'
import { findCall } from './pages/find-call.ts'
import { findCalls } from './pages/find-calls.ts'
import { findCallsAt, listPositions } from './pages/list-positions.ts'
import { callSeries } from './summaries/call-series.ts'
import { dailyUsage } from './summaries/daily-usage.ts'
import { summarizeCalls } from './summaries/summarize-calls.ts'
import { costsBy, usageBy } from './summaries/usage-by.ts'
import { usageBySession } from './summaries/usage-by-session.ts'
import { costByDay, usageTotals } from './summaries/usage-totals.ts'
import { type CallRange, insertCalls } from './tables/insert-calls.ts'
import { readRetainedFrom } from './tables/marks.ts'
import { createRebuildTables } from './tables/rebuild.ts'
import { dropCallsBefore } from './tables/retention.ts'

export type CallLog = ReturnType<typeof openCallLog>

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
export function openCallLog(url: string, cluster: string | null = null) {
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
    /** Throws when ClickHouse does not answer. */
    ping: async () => {
      const result = await client.ping({ select: true })
      if (!result.success) throw result.error
    },
    /** Brings the tables up to date. All functions below do so before their first use. */
    migrate: async () => {
      await prepare()
    },
    /** Adds the range's rows; a range that is already present adds nothing. Returns the number of rows of the range. */
    insertCalls: (range: CallRange) => prepared(() => insertCalls(client, range)),
    createRebuildTables: async () => {
      await prepare()
      return createRebuildTables(client)
    },
    dropCallsBefore: (cutoffMs: number) => prepared(() => dropCallsBefore(client, cutoffMs)),
    // From here on each throws Failure `service_unavailable` while ClickHouse is away.
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
