/** Operations of the call log. */
import type { CallWithDetail } from '../../../schemas/call-log/detail.ts'
import type { CallScope } from '../../../schemas/call-log/page-query.ts'
import { Failure } from '../../../schemas/failure.ts'
import * as operations from '../../../schemas/management/calls/calls.ts'
import { type Credits, parseCredits, printCredits } from '../../../schemas/money.ts'
import { INSTALLATION } from '../../../schemas/notifications/event.ts'
import type { CallLog } from '../../../src/clickhouse/call-log.ts'
import { printDetail } from '../../../src/core/call-log/detail.ts'
import { readDetail } from '../../../src/core/call-log/detail-text.ts'
import { DAY_MS, type LogWindow } from '../../../src/core/call-log/window.ts'
import { makeNextCursor, withAttempts } from '../../call-log/page.ts'
import { readRefund } from '../../call-log/refund.ts'
import { type LogSearchDeps, omitEmpty, readFilters, readPlace } from '../../call-log/search.ts'
import { printWindow } from '../../calls/query.ts'
import { findMember } from '../caller.ts'
import { type Context, implementWith, type ReadContext } from '../operation.ts'
import { printInstant } from '../shapes.ts'

export interface CallServices {
  readonly callLog: CallLog
  /** Signs the cursors; the same on every gateway process. */
  readonly cursorKey: Uint8Array
}

/**
 * Returns the keys to whose calls the search is limited; null: no limit. A member of an organization may read the calls
 * of their keys, and no others.
 * @throws Failure `permission_denied`
 */
export async function listVisibleKeys(
  { caller, database }: ReadContext,
  accountId: string,
  keyId?: string,
): Promise<readonly string[] | null> {
  const wanted = keyId === undefined ? null : [keyId]
  const memberId = findMember(caller, accountId)
  if (memberId === null) return wanted
  const own = (await database.keys.list(accountId, { memberId })).map(({ id }) => id)
  if (keyId !== undefined && !own.includes(keyId))
    throw new Failure('permission_denied', 'key_id: belongs to another member. Name one of your keys.')
  return wanted ?? own
}

const toSearchDeps = ({ now }: Context, { cursorKey }: CallServices): LogSearchDeps => ({
  cursorKey,
  now: () => now,
})

const BUCKET_SECONDS = [1, 10, 60, 300, 900, 3_600, 10_800, 86_400, 604_800, 2_592_000] as const
const MAX_BUCKETS = 200
const SERIES_MAX_DAYS = 365

/** Returns the shortest bucket that parts the window into at most `MAX_BUCKETS`. */
const chooseBucket = ({ from, to }: LogWindow): number =>
  BUCKET_SECONDS.find((seconds) => (to - from) / 1000 / seconds <= MAX_BUCKETS) ?? BUCKET_SECONDS.at(-1)!

interface ManagedFilters {
  readonly model_part?: string | undefined
  readonly key_part?: string | undefined
  readonly not_model?: readonly string[] | undefined
  readonly not_error_code?: readonly string[] | undefined
  readonly cost_above?: Credits | undefined
  readonly latency_above_ms?: number | undefined
}

/** Returns the filters that a query names, including those that `/v1/logs` does not have. */
const readManagedFilters = (input: ManagedFilters & Parameters<typeof readFilters>[0]) => ({
  ...readFilters(input),
  modelPart: input.model_part || null,
  keyPart: input.key_part || null,
  notModels: omitEmpty(input.not_model),
  notErrorCodes: omitEmpty(input.not_error_code),
  costAbove: input.cost_above ?? null,
  latencyAboveMs: input.latency_above_ms ?? null,
})

/** Counts calls over time, in the window that a query names. */
async function readSeries(
  context: Context,
  services: CallServices,
  input: Parameters<typeof readManagedFilters>[0] & Parameters<typeof readPlace>[2] & { timezone: string },
  calls: CallScope,
) {
  const place = readPlace(toSearchDeps(context, services), calls.accountId ?? INSTALLATION, input)
  const to = Math.min(place.window.to, context.now)
  const window = { from: Math.min(to, Math.max(place.window.from, to - SERIES_MAX_DAYS * DAY_MS)), to }
  const bucketSeconds = chooseBucket(window)
  const { timezone } = input
  const filter = { ...calls, ...readManagedFilters(input), ...window, bucketSeconds, timezone }
  const points = await services.callLog.callSeries(filter)
  return {
    ...printWindow(window),
    bucket_seconds: bucketSeconds,
    data: points.map(({ at, requests, failed, byStatus, cost, latencyP50, latencyP99 }) => ({
      at: printInstant(at * 1000),
      requests,
      failed,
      by_status: byStatus,
      cost: printCredits(cost),
      latency_p50_ms: latencyP50,
      latency_p99_ms: latencyP99,
    })),
  }
}

/** Lists what calls have, in the window that a query names. */
const readValues = (
  context: Context,
  services: CallServices,
  input: Parameters<typeof readPlace>[2],
  calls: CallScope,
) => {
  const { window } = readPlace(toSearchDeps(context, services), calls.accountId ?? INSTALLATION, input)
  return services.callLog.listCallValues({ ...calls, ...readFilters({}), ...window })
}

/** Returns which calls of all accounts an input names. */
const toInstallationFilter = (input: Partial<Record<'account_id' | 'channel_id' | 'key_id', string>>) => ({
  accountId: input.account_id ?? null,
  channelId: input.channel_id ?? null,
  keyIds: input.key_id === undefined ? null : [input.key_id],
})

const implement = implementWith<CallServices>()

export const callOperations = [
  implement(operations.listCalls, async (context, input, services) => {
    const accountId = input.account_id
    const keyIds = await listVisibleKeys(context, accountId, input.key_id)
    const place = readPlace(toSearchDeps(context, services), accountId, input)
    const { window, order, cursor } = place
    const found = await services.callLog.findCalls({
      accountId,
      keyIds,
      ...readManagedFilters(input),
      ...window,
      order,
      limit: input.limit,
      after: cursor?.after ?? null,
    })
    return {
      object: 'list' as const,
      ...printWindow(window),
      data: found.rows.map(withAttempts),
      has_more: found.hasMore,
      next_cursor: makeNextCursor(toSearchDeps(context, services), accountId, place, found),
    }
  }),
  implement(operations.seriesOfCalls, async (context, input, services) => {
    const accountId = input.account_id
    const keyIds = await listVisibleKeys(context, accountId, input.key_id)
    return readSeries(context, services, input, { accountId, keyIds })
  }),
  implement(operations.listCallValues, async (context, input, services) => {
    const accountId = input.account_id
    const keyIds = await listVisibleKeys(context, accountId, input.key_id)
    return readValues(context, services, input, { accountId, keyIds })
  }),
  implement(operations.listAllCalls, async (context, input, services) => {
    const place = readPlace(toSearchDeps(context, services), INSTALLATION, input)
    const { window, order, cursor } = place
    const found = await services.callLog.findInstallationCalls({
      ...toInstallationFilter(input),
      ...readManagedFilters(input),
      ...window,
      order,
      limit: input.limit,
      after: cursor?.after ?? null,
    })
    const names = await context.database.accounts.readNames(found.rows.map(({ account_id }) => account_id))
    return {
      object: 'list' as const,
      ...printWindow(window),
      data: found.rows.map((row) => ({
        ...row,
        attempts: withAttempts(row).attempts,
        account_name: names.get(row.account_id) ?? null,
      })),
      has_more: found.hasMore,
      next_cursor: makeNextCursor(toSearchDeps(context, services), INSTALLATION, place, found),
    }
  }),
  implement(operations.seriesOfAllCalls, (context, input, services) =>
    readSeries(context, services, input, toInstallationFilter(input)),
  ),
  implement(operations.listAllCallValues, (context, input, services) =>
    readValues(context, services, input, toInstallationFilter(input)),
  ),
  implement(operations.showCall, async (context, { account_id: accountId, id }, { callLog }) => {
    const found = await callLog.findCall({ accountId, keyId: null, id })
    // As a call that is not there: a member does not learn of others' calls.
    const call = found !== null && (await maySee(context, accountId, found.key_id)) ? found : null
    if (call === null) throw new Failure('log_not_found', `There is no call ${id} in account ${accountId}.`)
    const refund = await readRefund(context.database.wallets, accountId, call.task_id ?? call.request_id)
    // The schema of the answer keeps only the fields of a log row.
    const shown = { call: withAttempts(call), detail: printDetail(call), refund }
    return context.caller.installation === null ? shown : { ...shown, operator: toCosts(call) }
  }),
]

const toCosts = ({ channel_id, cost, upstream_cost, detail }: CallWithDetail) => ({
  channel_id,
  upstream_cost,
  margin: upstream_cost === null ? null : printCredits(parseCredits(cost) - parseCredits(upstream_cost)),
  usage_reported: readDetail(detail).usage_reported ?? null,
})

const maySee = (context: Context, accountId: string, keyId: string): Promise<boolean> =>
  listVisibleKeys(context, accountId, keyId).then(
    () => true,
    (error: unknown) => {
      if (error instanceof Failure && error.code === 'permission_denied') return false
      throw error
    },
  )
