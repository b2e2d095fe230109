/**
 * `GET /api/v1/usage`: the usage of the key's account in a window of time; an employee's key sees its own usage alone.
 * See docs/api-rules.md, "Balance and usage".
 */
import { map, type Observable } from 'rxjs'
import type { Credential } from '../../schemas/accounts/key.ts'
import { type UsageReport, usageQuery } from '../../schemas/accounts/usage.ts'
import { CURRENCY, type LogPeriod } from '../../schemas/call-log/row.ts'
import { printCredits } from '../../schemas/money.ts'
import type { CallLog } from '../../src/clickhouse/call-log.ts'
import type { GatewayRequest, Reply } from '../../src/http/handler.ts'
import { visibleUsage } from '../call-log/search.ts'
import { readQuery, windowOf } from '../query.ts'
import { fromAbortable } from '../replies/from-abortable.ts'
import { jsonReply } from '../replies/json.ts'

export interface UsageDeps {
  readonly callLog: Pick<CallLog, 'usageTotals'>
  readonly now?: () => number
}

const DEFAULT_PERIOD: LogPeriod = '30d'

/** Answers the request. The reader is authenticated; reading is free, so no wallet is checked. */
export const usage =
  ({ callLog, now = Date.now }: UsageDeps) =>
  (
    reader: Pick<Credential, 'key' | 'account'>,
    { query }: Pick<GatewayRequest, 'query'>,
  ): Observable<Reply> =>
    fromAbortable(async (signal): Promise<UsageReport> => {
      const { from, to } = windowOf(readQuery(usageQuery, query), DEFAULT_PERIOD, now())
      const totals = await callLog.usageTotals({ ...visibleUsage(reader), from, to }, signal)
      return {
        object: 'usage',
        currency: CURRENCY,
        period_from: new Date(from).toISOString(),
        period_to: new Date(to).toISOString(),
        total_requests: totals.requests,
        total_cost: printCredits(totals.cost),
        total_input_tokens: totals.inputTokens,
        total_output_tokens: totals.outputTokens,
        total_cached_tokens: totals.cachedTokens,
      }
    }).pipe(map(jsonReply))
