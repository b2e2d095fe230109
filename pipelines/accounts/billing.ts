/**
 * `GET /v1/dashboard/billing/*`: the key's wallet in the shapes that third-party chat clients read.
 * See docs/api-rules.md, "Balance and usage".
 */
import {
  type BillingSubscription,
  type BillingUsage,
  billingUsageQuery,
  type CreditGrants,
} from '../../schemas/accounts/billing.ts'
import type { ApiKey } from '../../schemas/accounts/key.ts'
import { type Credits, printCredits } from '../../schemas/money.ts'
import type { CallSummaries } from '../../src/clickhouse/call-log.ts'
import type { DayCost } from '../../src/clickhouse/summaries/usage-totals.ts'
import { DAY_MS, type LogWindow } from '../../src/core/call-log/window.ts'
import type { KnownKey } from '../../src/credentials/credentials.ts'
import type { Handler } from '../../src/http/handler.ts'
import { visibleUsage } from '../call-log/search.ts'
import { type AuthenticatedCall, authenticate, type CallAccess } from '../calls/authenticate.ts'
import type { Call, Stage } from '../calls/pipeline.ts'
import { type Asked, answerJson, calls, type Found, find, readParams } from '../calls/pipeline.ts'
import { readQuery, refuseParameter } from '../calls/query.ts'
import { rateLimit } from '../calls/rate-limit.ts'

/** These clients read this as «without end»: the last second that a date can have in four digits. */
const NEVER_SECONDS = Date.UTC(9999, 11, 31, 23, 59, 59) / 1000

/** Returns the nearest double: the one place where an amount leaves as a number. */
const toNumber = (amount: Credits): number => Number(printCredits(amount))
const toHundredths = (amount: Credits): number => toNumber(amount * 100n)

type Reader = Pick<KnownKey, 'key' | 'view' | 'cap'>
/** Spend of the key; null where the wallet or the cap tells. */
type Spent = Found<Credits | null>

/**
 * Returns the amounts of the reader. Cost of this process's ended calls counts as used, booked or not, as it does
 * where calls are admitted. An employee sees the cap and the amount spent; without a cap, the amount spent and the
 * wallet's balance.
 */
function readAmounts({ key, view, cap }: Reader, spent: Credits | null) {
  const { totals, balance, unbooked } = cap !== null && key.kind === 'employee' ? cap : view
  if (spent !== null) return { used: spent, available: balance, granted: balance + spent }
  const used = totals.used + unbooked
  return { used, available: balance, granted: balance + used + totals.held }
}

export interface GrantDeps {
  readonly keys: { show(keyId: string): Promise<ApiKey> }
}

/**
 * Adds what an employee key without a cap has spent. No booking tells it to this process: the key that it knows has the
 * amount of when it was loaded, which is the answer while PostgreSQL is down.
 */
export const findSpent = ({ keys }: GrantDeps): Stage<AuthenticatedCall, AuthenticatedCall & Spent> =>
  find(async ({ known: { key, cap } }) => {
    if (key.kind !== 'employee' || cap !== null) return null
    const { grant } = await keys.show(key.id).catch(() => key)
    return grant?.spent ?? 0n
  })

/** Answers with what the wallet may spend in all. */
export const answerWithSubscription = (): Stage<AuthenticatedCall & Spent, never> =>
  answerJson(({ known, found }): BillingSubscription => {
    const { expiresAt } = known.key
    const granted = toNumber(readAmounts(known, found).granted)
    return {
      object: 'billing_subscription',
      has_payment_method: true,
      hard_limit_usd: granted,
      soft_limit_usd: granted,
      system_hard_limit_usd: granted,
      access_until: expiresAt === null ? NEVER_SECONDS : Math.floor(expiresAt.getTime() / 1000),
    }
  })

/** Answers with what the wallet has, and what of it is used. */
export const answerWithGrants = (): Stage<AuthenticatedCall & Spent, never> =>
  answerJson(({ known, found }): CreditGrants => {
    const { granted, used, available } = readAmounts(known, found)
    return {
      object: 'credit_summary',
      total_granted: toNumber(granted),
      total_used: toNumber(used),
      total_available: toNumber(available),
    }
  })

export interface BillingUsageDeps {
  readonly callLog: CallSummaries
  readonly now?: () => number
}

/** Reading is free, so no wallet is checked. */
export const billingSubscription = (access: CallAccess, deps: GrantDeps): Handler =>
  calls(authenticate(access))
    .then(rateLimit(access))
    .then(findSpent(deps))
    .then(answerWithSubscription())
    .toHandler()

export const creditGrants = (access: CallAccess, deps: GrantDeps): Handler =>
  calls(authenticate(access))
    .then(rateLimit(access))
    .then(findSpent(deps))
    .then(answerWithGrants())
    .toHandler()

export const billingUsage = (access: CallAccess, deps: BillingUsageDeps): Handler =>
  calls(authenticate(access))
    .then(rateLimit(access))
    .then(readDays(deps))
    .then(findCosts(deps))
    .then(answerWithCosts())
    .toHandler()

type DaysCall = AuthenticatedCall & Asked<LogWindow>

/** Adds the days, as a window of time. @throws Failure `invalid_request` */
export const readDays = ({ now = Date.now }: BillingUsageDeps): Stage<AuthenticatedCall, DaysCall> =>
  readParams(({ request }) => readCostWindow(request.query, now()))

/** Adds what each day cost, by model. */
export const findCosts = ({ callLog }: BillingUsageDeps): Stage<DaysCall, Call & Found<readonly DayCost[]>> =>
  find(({ known, params }, signal) => callLog.sumCostByDay({ ...visibleUsage(known), ...params }, signal))

/** Answers with the costs. */
export const answerWithCosts = (): Stage<Call & Found<readonly DayCost[]>, never> =>
  answerJson(({ found }) => printCosts(found))

function readCostWindow(query: string, now: number): LogWindow {
  const { start_date: first = 0, end_date: last } = readQuery(billingUsageQuery, query)
  if (last !== undefined && first > last) throw refuseParameter('start_date', 'must not be after end_date')
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
