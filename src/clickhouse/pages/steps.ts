/**
 * Searches a page in a long window in steps: first in its most likely part, then in the rest. A page of a window reads
 * each part of the window, even where one of them fills it; so most pages cost the same whatever the history, and
 * those that a month does not fill cost one query more. A filter makes the latter likely: then all of the window is
 * read at once, which costs less than a second query.
 */

import type { InstallationPageQuery } from '../../../schemas/call-log/page-query.ts'
import { findSharedId } from '../../core/call-log/shared-ids.ts'
import { DAY_MS, type LogWindow } from '../../core/call-log/window.ts'
import { makePageStatement, type Statement } from './statement.ts'

/** The longest usual period, 30 days or a month, and its last day: read as a whole. */
const FIRST_STEP_MS = 32 * DAY_MS
/** The id of a request or of a task holds the time at which it was made, perhaps by another machine's clock. */
const CLOCK_SKEW_MS = 60_000
/** Few calls take longer, and few tasks: those that do are searched in all later time. */
const TYPICAL_CALL_MS = 60 * 60 * 1000
/** No clock of ours is so far behind that a call ends this long before it was made. */
const CLOCK_ERROR_MS = DAY_MS

const ULID_REF = /^[a-z]+_([0-7][0-9A-HJKMNP-TV-Z]{9})[0-9A-HJKMNP-TV-Z]{16}$/
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Returns epoch milliseconds; null for a text that is no id of ours. */
function readInstant(ref: string): number | null {
  const digits = ULID_REF.exec(ref)?.[1]
  if (digits === undefined) return null
  return [...digits].reduce((ms, digit) => ms * 32 + ALPHABET.indexOf(digit), 0)
}

const clipWindow = (window: LogWindow, from: number, to: number): LogWindow => ({
  from: Math.max(window.from, from),
  to: Math.min(window.to, to),
})
const isSome = ({ from, to }: LogWindow): boolean => from < to

/** Part of a window; `isShared`: among the calls for which one row stands. */
type Step = LogWindow & { readonly isShared?: boolean }

/**
 * Returns the steps for one call: the time around its start, first for a separate row, then for a shared one; then all
 * later time, because an abandoned call is settled late.
 */
function listRefSteps(window: LogWindow, ref: string): Step[] {
  const madeAt = readInstant(ref)
  if (madeAt === null) return [window]
  const near = clipWindow(window, madeAt - CLOCK_SKEW_MS, madeAt + TYPICAL_CALL_MS)
  const shared = findSharedId(ref) === null ? [] : [{ ...near, isShared: true }]
  return [near, ...shared, clipWindow(window, madeAt - CLOCK_ERROR_MS, window.to)].filter(isSome)
}

/** Windows that lie one behind the other in the order of the page, and together hold all that it may. */
function listTimeSteps({ order, from, to, after }: InstallationPageQuery, now: number): LogWindow[] {
  const window = { from, to }
  if (order === 'asc') {
    // Without a cursor the position of the account's first call in the window is unknown.
    const first = after === null ? to : after.createdAt + FIRST_STEP_MS
    return [clipWindow(window, from, first), clipWindow(window, first, to)].filter(isSome)
  }
  const newest = Math.min(to, now, after?.createdAt ?? to)
  const first = newest - FIRST_STEP_MS
  return [clipWindow(window, first, to), clipWindow(window, from, first)].filter(isSome)
}

const isNarrowed = (query: InstallationPageQuery): boolean => {
  const { keyIds, models, statuses, unitTypes, errorCodes, sessionId, channelId = null } = query
  const filters = [keyIds, models, statuses, unitTypes, errorCodes, sessionId, channelId]
  return filters.some((wanted) => wanted !== null)
}

/** Returns the steps in query order. Those of a ref overlap: the first that has rows has all of them. */
export function listSteps(query: InstallationPageQuery, now: number): Step[] {
  const window = { from: query.from, to: query.to }
  if (query.ref !== null) return listRefSteps(window, query.ref)
  return isNarrowed(query) ? [window].filter(isSome) : listTimeSteps(query, now)
}

/**
 * Returns the rows of the page in their order, and one more where there are more. `read` is called until there are
 * enough.
 */
export async function readSteps<Row>(
  query: InstallationPageQuery,
  read: (statement: (columns: string) => Statement) => Promise<Row[]>,
): Promise<Row[]> {
  const wanted = query.limit + 1
  const rows: Row[] = []
  for (const step of listSteps(query, Date.now())) {
    const missing = wanted - rows.length
    rows.push(...(await read((columns) => makePageStatement(columns, { ...query, ...step }, missing))))
    if (rows.length >= wanted || (query.ref !== null && rows.length > 0)) break
  }
  return rows
}
