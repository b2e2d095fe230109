/**
 * Finds the calls that the log has and PostgreSQL has not, and books them: each once, by its request id. The log is a
 * copy, so there are none unless PostgreSQL lost what it had committed.
 */

import type { LoggedCall, UnbookedSum } from '../../schemas/call-log/unbooked.ts'
import { printCredits } from '../../schemas/money.ts'
import type { CallAudit } from '../../src/clickhouse/call-log.ts'
import type { Accounts } from '../../src/postgres/accounts/repository.ts'
import type { Bookings } from '../../src/postgres/billing/repository.ts'
import type { CallCopy } from '../../src/postgres/call-log/repository.ts'

/** Calls that are compared at a time. */
const PAGE_CALLS = 20_000
/** Calls that are read in full and booked at a time: their ids are a part of the query's address. */
const BOOK_CALLS = 200

interface UnbookedDeps {
  readonly database: {
    readonly callCopy: CallCopy
    readonly accounts: Accounts
  }
  readonly callLog: CallAudit
  readonly pageCalls?: number
}

/** Returns them in the order of the log; of a call that the log has twice, the first. */
export async function findUnbooked(deps: UnbookedDeps): Promise<LoggedCall[]> {
  const { database, callLog, pageCalls = PAGE_CALLS } = deps
  const admittedSince = (await database.callCopy.readKeptSince())?.getTime() ?? 0
  const found = new Map<string, LoggedCall>()
  let after: LoggedCall | null = null
  for (;;) {
    const calls: LoggedCall[] = await callLog.listLoggedCalls({ admittedSince, after, limit: pageCalls })
    if (calls.length === 0) return [...found.values()]
    const unbooked = await database.callCopy.readUnbooked(calls)
    for (const call of calls)
      if (unbooked.has(call.requestId) && !found.has(call.requestId)) found.set(call.requestId, call)
    after = calls.at(-1)!
  }
}

const sumCosts = (calls: readonly LoggedCall[]): string =>
  printCredits(calls.reduce((sum, { cost }) => sum + cost, 0n))

/** Sums them up by account. */
export async function sumUnbooked(
  database: UnbookedDeps['database'],
  calls: readonly LoggedCall[],
): Promise<UnbookedSum> {
  const byAccount = Map.groupBy(calls, ({ accountId }) => accountId)
  const names = await database.accounts.readNames([...byAccount.keys()])
  return {
    calls: calls.length,
    cost: sumCosts(calls),
    accounts: [...byAccount].map(([account_id, some]) => ({
      account_id,
      calls: some.length,
      cost: sumCosts(some),
      is_known: names.has(account_id),
    })),
  }
}

/** Books calls of known accounts. Returns the request ids that were booked; others had been booked meanwhile. */
export async function bookLogged(
  bookings: Bookings,
  callLog: CallAudit,
  calls: readonly LoggedCall[],
): Promise<Set<string>> {
  const booked = new Set<string>()
  for (let at = 0; at < calls.length; at += BOOK_CALLS) {
    const settlements = await callLog.readLoggedSettlements(calls.slice(at, at + BOOK_CALLS))
    for (const id of (await bookings.book(settlements)).booked) booked.add(id)
  }
  return booked
}
