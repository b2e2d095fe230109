/** The statement behind a page of the call log. */

import type {
  CallPosition,
  InstallationFilter,
  InstallationPageQuery,
} from '../../../schemas/call-log/page-query.ts'
import type { UnitType } from '../../../schemas/call-log/row.ts'
import { printCredits } from '../../../schemas/money.ts'
import { findSharedId } from '../../core/call-log/shared-ids.ts'
import { toClickHouseInstant } from '../instant.ts'
import { LIVE_NAMES } from '../tables/names.ts'

export interface Statement {
  readonly query: string
  readonly query_params: Record<string, unknown>
}

/** The unit type by which callers find calls billed by tokens; their rows have none. */
const TOKEN_BILLED: UnitType = 'chat'
const REQUEST_ID = /^req_/

/** Returns the condition. Task ids have other prefixes, so a request id needs one index, not two. */
const printRefCondition = (ref: string, isShared = false): string =>
  isShared
    ? 'call_count > 1 AND position(detail, {sharedId:String}) > 0'
    : REQUEST_ID.test(ref)
      ? 'request_id = {ref:String}'
      : '(request_id = {ref:String} OR task_id = {ref:String})'

/**
 * Returns the filter of calls besides the account and the window, the most selective condition first. Many failed calls
 * share one state.
 */
function printFilter(filter: InstallationFilter) {
  const unitTypes = filter.unitTypes?.includes(TOKEN_BILLED) ? [...filter.unitTypes, ''] : filter.unitTypes
  const { ref, isShared, costAbove } = filter
  const all: readonly (readonly [condition: string, name: string, value: unknown])[] = [
    [ref === null ? '' : printRefCondition(ref, isShared), 'ref', ref],
    ['session_id = {sessionId:String}', 'sessionId', filter.sessionId],
    ['error_code IN {errorCodes:Array(String)}', 'errorCodes', filter.errorCodes],
    ['unit_type IN {unitTypes:Array(String)}', 'unitTypes', unitTypes],
    ['model IN {models:Array(String)}', 'models', filter.models],
    ['key_id IN {keyIds:Array(String)}', 'keyIds', filter.keyIds],
    ['status IN {statuses:Array(String)}', 'statuses', filter.statuses],
    ['channel_id = {channelId:String}', 'channelId', filter.channelId ?? null],
    ['positionCaseInsensitiveUTF8(model, {modelPart:String}) > 0', 'modelPart', filter.modelPart ?? null],
    [
      `(positionCaseInsensitiveUTF8(key_name, {keyPart:String}) > 0
        OR positionCaseInsensitiveUTF8(key_prefix, {keyPart:String}) > 0)`,
      'keyPart',
      filter.keyPart ?? null,
    ],
    ['model NOT IN {notModels:Array(String)}', 'notModels', filter.notModels ?? null],
    ['error_code NOT IN {notErrorCodes:Array(String)}', 'notErrorCodes', filter.notErrorCodes ?? null],
    ['cost > {costAbove:Decimal(18, 8)}', 'costAbove', costAbove == null ? null : printCredits(costAbove)],
    ['latency_ms > {latencyAboveMs:UInt64}', 'latencyAboveMs', filter.latencyAboveMs ?? null],
  ]
  const given = all.filter(([, , value]) => value !== null)
  return {
    conditions: given.map(([condition]) => condition),
    parameters: {
      ...Object.fromEntries(given.map(([, name, value]) => [name, value])),
      ...(isShared === true && ref !== null && { sharedId: findSharedId(ref) }),
    },
  }
}

/**
 * Returns whether the table of failed calls has all matching rows: those with an error code, and those of these
 * states.
 */
export const isOfFailed = ({ errorCodes, statuses, ref }: InstallationFilter): boolean =>
  // One call is found by an index of either table, and only `calls` says which ones share a row.
  ref === null && (errorCodes !== null || (statuses !== null && !statuses.includes('success')))

/** Returns the rows strictly after `after` in the order of the page; the table's order can use the first bound. */
function printPosition(order: 'asc' | 'desc', after: CallPosition) {
  const behind = order === 'asc' ? '>' : '<'
  const at = `{afterAt:DateTime64(3, 'UTC')}`
  return {
    conditions: [
      `created_at ${behind}= ${at}`,
      `(created_at ${behind} ${at} OR id ${behind} {afterId:UInt64})`,
    ],
    parameters: { afterAt: toClickHouseInstant(after.createdAt), afterId: after.id },
  }
}

/**
 * Returns the statement for the first `rows` rows of a page. Equal instants are ordered by id, so that a walk over pages
 * returns every row once.
 * Filtered columns are read first: of a column with few values a hundred thousand rows are read in a millisecond,
 * while the instants, which ClickHouse would read first, take ten times as long.
 */
export function makePageStatement(columns: string, query: InstallationPageQuery, rows: number): Statement {
  const calls = selectCalls(query)
  const position = query.after && printPosition(query.order, query.after)
  const direction = query.order === 'asc' ? 'ASC' : 'DESC'
  return {
    query: `
      SELECT ${columns} FROM ${isOfFailed(query) ? LIVE_NAMES.failed : LIVE_NAMES.calls}
      ${[calls.where, ...(position?.conditions ?? [])].join(' AND ')}
      ORDER BY created_at ${direction}, id ${direction}
      LIMIT {rows:UInt32}`,
    query_params: { ...calls.parameters, ...position?.parameters, rows },
  }
}

/** Returns the conditions by which calls are read, up to the last of WHERE, and their parameters. */
export function selectCalls(filter: InstallationFilter) {
  const narrowing = printFilter(filter)
  const before = narrowing.conditions.length === 0 ? '' : `PREWHERE ${narrowing.conditions.join(' AND ')}`
  return {
    where: `${before}
      WHERE ${filter.accountId === null ? '' : 'account_id = {accountId:String} AND '}created_at >= {from:DateTime64(3, 'UTC')}
        AND created_at < {to:DateTime64(3, 'UTC')}`,
    parameters: {
      ...(filter.accountId !== null && { accountId: filter.accountId }),
      from: toClickHouseInstant(filter.from),
      to: toClickHouseInstant(filter.to),
      ...narrowing.parameters,
    },
  }
}
