/**
 * `GET /v1/dashboard/billing/*`: the key's wallet in the shapes that third-party chat clients read.
 * See docs/api-rules.md, "Balance and usage".
 */
import { defer, map, type Observable, of } from 'rxjs'
import {
  type BillingSubscription,
  type BillingUsage,
  billingUsageQuery,
  type CreditGrants,
} from '../../schemas/accounts/billing.ts'
import type { Credential } from '../../schemas/accounts/key.ts'
import { type Credits, printCredits } from '../../schemas/money.ts'
import type { CallLog } from '../../src/clickhouse/call-log.ts'
import type { DayCost } from '../../src/clickhouse/summaries/usage-totals.ts'
import { DAY_MS } from '../../src/core/call-log/window.ts'
import type { GatewayRequest, Reply } from '../../src/http/handler.ts'
import { visibleUsage } from '../call-log/search.ts'
import { readQuery, refusedParameter } from '../query.ts'
import { fromAbortable } from '../replies/from-abortable.ts'
import { jsonReply } from '../replies/json.ts'
import type { KnownKey } from './credentials.ts'

/** These clients read this as «without end»: the last second that a date can have in four digits. */
const NEVER_SECONDS = Date.UTC(9999, 11, 31, 23, 59, 59) / 1000

/** Returns the nearest double: the one place where an amount leaves as a number. */
const toNumber = (amount: Credits): number => Number(printCredits(amount))
const toHundredths = (amount: Credits): number => toNumber(amount * 100n)

type Reader = Pick<KnownKey, 'key' | 'view' | 'cap'>

/**
 * Returns the amounts of the reader. Cost of this process's ended calls counts as used, booked or not, as it does
 * where calls are admitted. An employee sees the cap and the amount spent; without a cap, the amount spent and the
 * wallet's balance.
 */
function amountsOf({ key, view, cap }: Reader) {
  const { totals, balance, unbooked } = cap !== null && key.kind === 'employee' ? cap : view
  if (key.kind === 'employee' && cap === null) {
    const used = key.grant?.spent ?? 0n
    return { used, available: balance, granted: balance + used }
  }
  const used = totals.used + unbooked
  return { used, available: balance, granted: balance + used + totals.held }
}

export const billingSubscription = (reader: Reader): Observable<Reply> =>
  defer(() => {
    const { key } = reader
    const granted = toNumber(amountsOf(reader).granted)
    const subscription: BillingSubscription = {
      object: 'billing_subscription',
      has_payment_method: true,
      hard_limit_usd: granted,
      soft_limit_usd: granted,
      system_hard_limit_usd: granted,
      access_until: key.expiresAt === null ? NEVER_SECONDS : Math.floor(key.expiresAt.getTime() / 1000),
    }
    return of(jsonReply(subscription))
  })

export const creditGrants = (reader: Reader): Observable<Reply> =>
  defer(() => {
    const { granted, used, available } = amountsOf(reader)
    const grants: CreditGrants = {
      object: 'credit_summary',
      total_granted: toNumber(granted),
      total_used: toNumber(used),
      total_available: toNumber(available),
    }
    return of(jsonReply(grants))
  })

export interface BillingUsageDeps {
  readonly callLog: Pick<CallLog, 'costByDay'>
  readonly now?: () => number
}

function windowOf(query: string, now: number) {
  const { start_date: first = 0, end_date: last } = readQuery(billingUsageQuery, query)
  if (last !== undefined && first > last) throw refusedParameter('start_date', 'must not be after end_date')
  return { from: first, to: last === undefined ? now + 1 : last + DAY_MS }
}

function printCosts(costs: readonly DayCost[]): BillingUsage {
  const days = [...Map.groupBy(costs, ({ day }) => day)]
  return {
    object: 'list',
    total_usage: toHundredths(costs.reduce((sum, { cost }) => sum + cost, 0n)),
    daily_costs: days.map(([day, models]) => ({
      timestamp: Date.parse(day) / 1000,
      line_items: models.map(({ model, cost }) => ({ name: model, cost: toHundredths(cost) })),
    })),
  }
}

export const billingUsage =
  ({ callLog, now = Date.now }: BillingUsageDeps) =>
  (
    reader: Pick<Credential, 'key' | 'account'>,
    { query }: Pick<GatewayRequest, 'query'>,
  ): Observable<Reply> =>
    fromAbortable(async (signal) => {
      const window = windowOf(query, now())
      return printCosts(await callLog.costByDay({ ...visibleUsage(reader), ...window }, signal))
    }).pipe(map(jsonReply))
