/**
 * `GET /v1/usage`: what a key has left, and what it spent today and in a session, for status lines. Free, at a zero
 * balance too. See docs/api-rules.md, "Balance and usage".
 */
import { type KeyUsage, keyUsageQuery } from '../../schemas/accounts/usage.ts'
import { printCredits } from '../../schemas/money.ts'
import type { CallSums } from '../../src/clickhouse/summaries/summed-rows.ts'
import { DAY_MS, periodWindow } from '../../src/core/call-log/window.ts'
import type { Handler } from '../../src/http/handler.ts'
import { type AuthenticatedCall, authenticate, type CallAccess } from '../calls/authenticate.ts'
import { type Asked, answerJson, calls, type Found, find, readParams, type Stage } from '../calls/pipeline.ts'
import { readQuery } from '../calls/query.ts'
import { limitUsageReads } from '../calls/rate-limit.ts'
import { showBalance } from './balance.ts'
import type { UsageDeps } from './usage.ts'

export const keyUsage = (access: CallAccess, deps: UsageDeps): Handler =>
  calls(authenticate(access))
    .then(limitUsageReads(access))
    .then(readSession())
    .then(findSpending(deps))
    .then(answerWithSpending())
    .toHandler()

type SessionCall = AuthenticatedCall & Asked<{ readonly sessionId: string; readonly now: number }>
type SpendingCall = SessionCall & Found<{ readonly today: CallSums; readonly session: CallSums | null }>

/** Adds the session. @throws Failure `invalid_request` */
export const readSession = (): Stage<AuthenticatedCall, SessionCall> =>
  readParams(({ request }) => ({
    sessionId: readQuery(keyUsageQuery, request.query).session_id ?? '',
    now: request.submittedAt,
  }))

/** Adds the sums of the key's calls of today, and of the session. */
export const findSpending = ({ callLog }: UsageDeps): Stage<SessionCall, SpendingCall> =>
  find(async ({ known: { account, key }, params: { sessionId, now } }, signal) => {
    const ofKey = { accountId: account.id, keyIds: [key.id] }
    const [today, session] = await Promise.all([
      callLog.sumUsage({ ...ofKey, ...periodWindow('today', now) }, signal),
      sessionId === ''
        ? null
        : callLog.sumUsage({ ...ofKey, sessionId, ...periodWindow('30d', now) }, signal),
    ])
    return { today, session }
  })

const printSums = ({ cost, requests, inputTokens, outputTokens, cachedTokens }: CallSums) => ({
  cost: printCredits(cost),
  requests,
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  cached_tokens: cachedTokens,
})

/** Answers with the balance and the sums. */
export const answerWithSpending = (): Stage<SpendingCall, never> =>
  answerJson((call): KeyUsage => {
    const { found, params } = call
    const { from } = periodWindow('today', params.now)
    return {
      ...showBalance(call),
      object: 'key.usage',
      today: {
        ...printSums(found.today),
        from: new Date(from).toISOString(),
        resets_at: new Date(from + DAY_MS).toISOString(),
      },
      ...(found.session !== null && { session: { id: params.sessionId, ...printSums(found.session) } }),
    }
  })
