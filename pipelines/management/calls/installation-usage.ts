/** The act that sums up the calls of all accounts. */
import { CURRENCY, type LogPeriod } from '../../../schemas/call-log/row.ts'
import { showInstallationUsage, type UsageGroup } from '../../../schemas/management/calls/usage.ts'
import type { CallLog } from '../../../src/clickhouse/call-log.ts'
import type { UsageSums } from '../../../src/clickhouse/summaries/usage-by.ts'
import { DAY_MS, type LogWindow } from '../../../src/core/call-log/window.ts'
import { windowOf } from '../../query.ts'
import { type Context, implement } from '../act.ts'
import { sumOf, sumsShape } from './usage.ts'

export interface InstallationUsageDeps {
  readonly callLog: Pick<CallLog, 'usageBy'>
}

const DEFAULT_PERIOD: LogPeriod = '30d'

/** Days are counted from 1970 on, and nothing has ended that is still to come. */
const withCalls = ({ from, to }: LogWindow, now: number): LogWindow => ({
  from: Math.max(from, 0),
  to: Math.min(to, now + DAY_MS),
})

type Names = ReadonlyMap<string, string>

/** Returns the names of the groups, by id. */
async function namesOf({ database }: Context, by: UsageGroup, rows: readonly UsageSums[]): Promise<Names> {
  if (by === 'account') return database.accountNames(rows.flatMap(({ accountId }) => accountId ?? []))
  return by === 'key' ? database.keyNames(rows.flatMap(({ keyId }) => keyId ?? [])) : new Map()
}

function rowShape(row: UsageSums, by: UsageGroup, names: Names) {
  const sums = sumsShape(row)
  const account_id = row.accountId ?? ''
  const key_id = row.keyId ?? ''
  switch (by) {
    case 'account':
      return { account_id, name: names.get(account_id) ?? null, ...sums }
    case 'key':
      return { key_id, name: names.get(key_id) ?? null, account_id, ...sums }
    case 'model':
      return { model: row.model ?? '', ...sums }
    case 'day':
      return { day: row.day ?? '', ...sums }
  }
}

const instant = (epochMs: number): string => new Date(epochMs).toISOString()

export const installationUsageActs = [
  implement<InstallationUsageDeps, typeof showInstallationUsage>(
    showInstallationUsage,
    async (context, { account_id: accountId = null, limit, ...input }) => {
      const { database, callLog, now } = context
      const by = input.by ?? (accountId === null ? 'account' : 'model')
      const window = windowOf(input, DEFAULT_PERIOD, now)
      const { from, to } = withCalls(window, now)
      if (accountId !== null) await database.showAccount(accountId)
      const before = { from: Math.max(0, from - (to - from)), to: from }
      const [earlier, found] = await Promise.all([
        callLog.usageBy({ accountId, by: 'model', ...before }),
        callLog.usageBy({ accountId, by, from, to }),
      ])
      const rows = found.slice(0, limit)
      const names = await namesOf(context, by, rows)
      return {
        object: 'usage' as const,
        currency: CURRENCY,
        period_from: instant(window.from),
        period_to: instant(window.to),
        account_id: accountId,
        by,
        rows: rows.map((row) => rowShape(row, by, names)),
        has_more: found.length > limit,
        total: sumsShape(sumOf(found)),
        before: sumsShape(sumOf(earlier)),
      }
    },
  ),
]
