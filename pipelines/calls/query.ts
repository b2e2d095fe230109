/** Parameters in the query string: read by a schema, refused by name; and the window of time that some of them give. */
import type { z } from 'zod'
import { logPeriodParameter, type WindowEnd } from '../../schemas/call-log/query.ts'
import type { LogPeriod } from '../../schemas/call-log/row.ts'
import { Failure } from '../../schemas/failure.ts'
import { type LogWindow, periodWindow, rangeWindow } from '../../src/core/call-log/window.ts'
import { PLAIN_ISSUES } from '../../src/core/plain-issues.ts'

const NUMBERS = ['limit', 'offset']

export const refuseParameter = (parameter: string, message: string): Failure =>
  new Failure('invalid_request', `Parameter ${parameter}: ${message}.`)

/**
 * Reads the query. An empty filter counts as absent, an empty number does not; of a duplicate parameter the first value counts.
 * @throws Failure `invalid_request` with a message that names the parameter
 */
export function readQuery<Schema extends z.ZodType>(schema: Schema, query: string): z.infer<Schema> {
  const given = [...new URLSearchParams(query)].filter(
    ([name, value]) => value !== '' || NUMBERS.includes(name),
  )
  const result = schema.safeParse(Object.fromEntries(given.reverse()), PLAIN_ISSUES)
  if (result.success) return result.data
  const issue = result.error.issues[0]!
  throw refuseParameter(String(issue.path[0]), issue.message)
}

/** Returns the window as answers have it. */
export const printWindow = ({ from, to }: LogWindow) => ({
  period_from: new Date(from).toISOString(),
  period_to: new Date(to).toISOString(),
})

interface WindowParameters {
  readonly from?: WindowEnd | undefined
  readonly to?: WindowEnd | undefined
  /** Applies only where `from` and `to` are not given. */
  readonly period?: string | undefined
}

/**
 * Returns the window of time.
 * @throws Failure `invalid_request` for a half-specified range and for an unknown period
 */
export function resolveWindow(
  { from, to, period }: WindowParameters,
  fallback: LogPeriod,
  now: number,
): LogWindow {
  if (from !== undefined && to !== undefined) {
    const window = rangeWindow(from, to)
    // A last day that ends where the window begins lies before it; equal instants are an empty window.
    if (window.from > window.to || (to.kind === 'day' && window.from === window.to))
      throw refuseParameter('from', 'must not be after to')
    return window
  }
  if (from !== undefined || to !== undefined)
    throw refuseParameter(from === undefined ? 'from' : 'to', 'from and to must be given together')
  const named = logPeriodParameter.optional().safeParse(period)
  if (!named.success) throw refuseParameter('period', named.error.issues[0]!.message)
  return periodWindow(named.data ?? fallback, now)
}
