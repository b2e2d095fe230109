/**
 * `GET /api/v1/usage`: the usage of the key's account in a window of time; an employee's key sees only its own usage.
 * See docs/api-rules.md, "Balance and usage".
 */
import { type UsageReport, usageQuery } from '../../schemas/accounts/usage.ts'
import { CURRENCY, type LogPeriod } from '../../schemas/call-log/row.ts'
import { printCredits } from '../../schemas/money.ts'
import type { CallSummaries } from '../../src/clickhouse/call-log.ts'
import type { CallSums } from '../../src/clickhouse/summaries/summed-rows.ts'
import type { LogWindow } from '../../src/core/call-log/window.ts'
import type { Handler } from '../../src/http/handler.ts'
import { visibleUsage } from '../call-log/search.ts'
import { type AuthenticatedCall, authenticate, type KeyAccess } from '../calls/authenticate.ts'
import type { Call, Stage } from '../calls/pipeline.ts'
import { type Asked, answerJson, calls, type Found, find, readParams } from '../calls/pipeline.ts'
import { printWindow, readQuery, resolveWindow } from '../calls/query.ts'

export interface UsageDeps {
  readonly callLog: CallSummaries
  readonly now?: () => number
}

const DEFAULT_PERIOD: LogPeriod = '30d'

type WindowCall = AuthenticatedCall & Asked<LogWindow>
type TotalsCall = Call & Asked<LogWindow> & Found<CallSums>

/** Reading is free, so no wallet is checked. */
export const usage = (access: KeyAccess, deps: UsageDeps): Handler =>
  calls(authenticate(access)).then(readWindow(deps)).then(findUsage(deps)).then(answerWithUsage()).toHandler()

/** Adds the window of time. @throws Failure `invalid_request` */
export const readWindow = ({ now = Date.now }: UsageDeps): Stage<AuthenticatedCall, WindowCall> =>
  readParams(({ request }) => resolveWindow(readQuery(usageQuery, request.query), DEFAULT_PERIOD, now()))

/** Adds what was used in the window. */
export const findUsage = ({ callLog }: UsageDeps): Stage<WindowCall, TotalsCall> =>
  find(({ known, params }, signal) => callLog.sumUsage({ ...visibleUsage(known), ...params }, signal))

/** Answers with the report. */
export const answerWithUsage = (): Stage<TotalsCall, never> =>
  answerJson(
    ({ params: window, found: totals }): UsageReport => ({
      object: 'usage',
      currency: CURRENCY,
      ...printWindow(window),
      total_requests: totals.requests,
      total_cost: printCredits(totals.cost),
      total_input_tokens: totals.inputTokens,
      total_output_tokens: totals.outputTokens,
      total_cached_tokens: totals.cachedTokens,
    }),
  )
