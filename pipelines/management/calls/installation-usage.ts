/** The operation that sums up the calls of all accounts. */
import { CURRENCY, type LogPeriod } from '../../../schemas/call-log/row.ts'
import { showInstallationUsage, type UsageGroup } from '../../../schemas/management/calls/usage.ts'
import { printCredits } from '../../../schemas/money.ts'
import type { CallSummaries } from '../../../src/clickhouse/call-log.ts'
import type { CostSums, UsageByQuery, UsageSums } from '../../../src/clickhouse/summaries/usage-by.ts'
import { DAY_MS, type LogWindow } from '../../../src/core/call-log/window.ts'
import { addAllSums, printSums } from '../../call-log/sums.ts'
import { printWindow, resolveWindow } from '../../calls/query.ts'
import { type Context, implementWith } from '../operation.ts'
import type { UsageServices } from './usage.ts'

const DEFAULT_PERIOD: LogPeriod = '30d'

/** Days are counted from 1970 on, and nothing has ended that is still to come. */
const withCalls = ({ from, to }: LogWindow, now: number): LogWindow => ({
  from: Math.max(from, 0),
  to: Math.min(to, now + DAY_MS),
})

type Names = ReadonlyMap<string, string>

/** Returns the names of the groups, by id. */
async function readNames({ database }: Context, by: UsageGroup, rows: readonly UsageSums[]): Promise<Names> {
  if (by === 'account') return database.accounts.readNames(rows.flatMap(({ accountId }) => accountId ?? []))
  if (by !== 'key') return new Map()
  const keys = await database.keys.readNamed(rows.flatMap(({ keyId }) => keyId ?? []))
  return new Map([...keys].map(([id, { name }]) => [id, name]))
}

/** Returns the id of the group that a row sums up. */
const readGroup = (row: UsageSums): string =>
  row.keyId ?? row.accountId ?? row.model ?? row.day ?? row.channelId ?? ''

function groupShape(row: UsageSums, by: UsageGroup, names: Names) {
  const id = readGroup(row)
  switch (by) {
    case 'account':
      return { account_id: id, name: names.get(id) ?? null }
    case 'key':
      return { key_id: id, name: names.get(id) ?? null, account_id: row.accountId ?? '' }
    case 'model':
      return { model: id }
    case 'day':
      return { day: id }
    case 'channel':
      return { channel_id: id }
  }
}

/** Returns the sums of calls, with the margin of those of them that have a known cost. */
function marginShape(costs: readonly CostSums[]) {
  const { requests, cost } = addAllSums(costs)
  const upstreamCost = costs.reduce((sum, row) => sum + row.upstreamCost, 0n)
  const isKnown = costs.length > 0
  return {
    upstream_cost: isKnown ? printCredits(upstreamCost) : null,
    margin: isKnown ? printCredits(cost - upstreamCost) : null,
    requests_with_cost: requests,
  }
}

interface Summed {
  readonly all: readonly UsageSums[]
  readonly costs: readonly CostSums[]
}

/** Only calls with a cost have a known channel. */
async function sum(callLog: CallSummaries, query: UsageByQuery): Promise<Summed> {
  const { by } = query
  const costs = callLog.sumCostsByGroup(query)
  return {
    costs: await costs,
    all: by === 'channel' ? await costs : await callLog.sumUsageByGroup({ ...query, by }),
  }
}

const totalShape = ({ all, costs }: Summed) => ({ ...printSums(addAllSums(all)), ...marginShape(costs) })

const implement = implementWith<UsageServices>()

export const installationUsageOperations = [
  implement(
    showInstallationUsage,
    async (context, { account_id: accountId = null, limit, ...input }, { callLog }) => {
      const { database, now } = context
      const by = input.by ?? (accountId === null ? 'account' : 'model')
      const window = resolveWindow(input, DEFAULT_PERIOD, now)
      const { from, to } = withCalls(window, now)
      if (accountId !== null) await database.accounts.show(accountId)
      const before = { from: Math.max(0, from - (to - from)), to: from }
      const [lost, earlier, found] = await Promise.all([
        database.lostSubmits.sum({ accountId, from, to }),
        sum(callLog, { accountId, by: by === 'channel' ? by : 'model', ...before }),
        sum(callLog, { accountId, by, timezone: input.timezone, from, to }),
      ])
      const rows = found.all.slice(0, limit)
      const costs = Map.groupBy(found.costs, readGroup)
      const names = await readNames(context, by, rows)
      return {
        object: 'usage' as const,
        currency: CURRENCY,
        ...printWindow(window),
        account_id: accountId,
        by,
        rows: rows.map((row) => ({
          ...groupShape(row, by, names),
          ...printSums(row),
          ...marginShape(costs.get(readGroup(row)) ?? []),
        })),
        has_more: found.all.length > limit,
        total: totalShape(found),
        before: totalShape(earlier),
        lost_submits: { submits: lost.submits, upstream_cost: printCredits(lost.cost) },
      }
    },
  ),
]
