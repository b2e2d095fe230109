/**
 * Usage rows as an operator reads them: the newest, and those that were booked since. Found by their id alone, so
 * that a question never costs more than the rows it reads.
 */
import type { CallStatus, LogRow } from '../../../schemas/call-log/row.ts'
import { type Credits, printCredits } from '../../../schemas/money.ts'
import { sharedIdOf } from '../../core/call-log/shared-ids.ts'
import type { Queryable, Sql } from '../connection.ts'

/** A row of the call log, and what only the operator sees of it. Instants are RFC 3339, amounts decimal credits. */
export interface OperatorCall extends Required<LogRow> {
  readonly account_id: string
  readonly protocol: string
  readonly stream: boolean
  readonly channel_id: string | null
  /** Time to the first byte for the client, milliseconds; null when none was sent. */
  readonly ttfb_ms: number | null
  /** The pre-charge estimate that admitted the call. */
  readonly estimate: string
  /** The price that the operator pays; null where that is not known. */
  readonly upstream_cost: string | null
  readonly usage_source: string
  /** When PostgreSQL had it. */
  readonly booked_at: string
}

/** An absent field does not filter. */
export interface CallFilter {
  readonly accountId?: string
  readonly keyId?: string
  readonly models?: readonly string[]
  readonly statuses?: readonly CallStatus[]
}

export interface NewestCalls {
  /** In the order of their ids. */
  readonly calls: OperatorCall[]
  /** The newest row there is, whether it passed the filter or not; 0: there is none. */
  readonly upto: bigint
  /** Not all rows were read, and fewer were found than requested. */
  readonly isCut: boolean
}

export interface CallsSince {
  readonly calls: OperatorCall[]
  /** Position to continue at: everything up to this id was read. */
  readonly upto: bigint
  /** More rows wait behind `upto`. */
  readonly hasMore: boolean
}

/** Number of ids that are searched for the newest calls that pass a filter. */
export const LOOK_BACK_ROWS = 100_000
/** Number of ids that are searched at a time for new calls. */
export const SINCE_ROWS = 2_000

interface Row {
  readonly id: bigint
  readonly created_at: bigint
  readonly submitted_at: bigint
  readonly booked_at: bigint
  readonly account_id: string
  readonly key_id: string
  readonly key_name: string | null
  readonly key_prefix: string | null
  readonly model: string
  readonly protocol: string
  readonly stream: boolean
  readonly status: CallStatus
  readonly error_code: string | null
  readonly error_message: string | null
  readonly input_tokens: bigint
  readonly output_tokens: bigint
  readonly cached_tokens: bigint
  readonly cache_write_tokens: bigint
  readonly reasoning_tokens: bigint
  readonly server_tool_calls: bigint
  readonly unit_count: string | null
  readonly unit_type: LogRow['unit_type']
  readonly cost: Credits
  readonly estimate: Credits
  readonly upstream_cost: Credits | null
  readonly usage_source: string
  readonly latency_ms: bigint
  readonly ttfb_ms: bigint | null
  readonly channel_id: string | null
  readonly request_id: string
  readonly task_id: string | null
  readonly result_urls: string[] | null
  readonly result_expires_at: bigint | null
  readonly call_count: number
  readonly attempts_count: number | null
  readonly attempts: Required<LogRow>['attempts'] | null
}

const COLUMNS = [
  ...['id', 'created_at', 'submitted_at', 'booked_at', 'account_id', 'key_id', 'model', 'protocol', 'stream'],
  ...['status', 'error_code', 'error_message', 'input_tokens', 'output_tokens', 'cached_tokens'],
  ...['cache_write_tokens', 'reasoning_tokens', 'server_tool_calls', 'unit_count', 'unit_type', 'cost'],
  ...['estimate', 'usage_source', 'latency_ms', 'ttfb_ms', 'channel_id', 'request_id', 'attempts_count'],
  ...['attempts', 'task_id', 'result_urls', 'result_expires_at', 'call_count'],
  'upstream_cost',
]

const isoInstant = (epochMs: bigint): string => new Date(Number(epochMs)).toISOString()

const toCall = (row: Row): OperatorCall => ({
  object: 'log',
  id: Number(row.id),
  created_at: isoInstant(row.created_at),
  submitted_at: isoInstant(row.submitted_at),
  booked_at: isoInstant(row.booked_at),
  account_id: row.account_id,
  key_id: row.key_id,
  key_name: row.key_name ?? '',
  key_prefix: row.key_prefix ?? '',
  model: row.model,
  protocol: row.protocol,
  stream: row.stream,
  status: row.status,
  error_code: row.error_code,
  error_message: row.error_message,
  input_tokens: Number(row.input_tokens),
  output_tokens: Number(row.output_tokens),
  cached_tokens: Number(row.cached_tokens),
  cache_write_tokens: Number(row.cache_write_tokens),
  reasoning_tokens: Number(row.reasoning_tokens),
  server_tool_calls: Number(row.server_tool_calls),
  unit_count: row.unit_count,
  unit_type: row.unit_type,
  cost: printCredits(row.cost),
  estimate: printCredits(row.estimate),
  upstream_cost: row.upstream_cost === null ? null : printCredits(row.upstream_cost),
  usage_source: row.usage_source,
  latency_ms: Number(row.latency_ms),
  ttfb_ms: row.ttfb_ms === null ? null : Number(row.ttfb_ms),
  channel_id: row.channel_id,
  request_id: row.request_id,
  task_id: row.task_id,
  result_urls: row.result_urls ?? [],
  result_expires_at: row.result_expires_at === null ? null : isoInstant(row.result_expires_at),
  call_count: row.call_count,
  attempts_count: row.attempts_count,
  attempts: row.attempts ?? [],
})

const narrowing = (sql: Queryable, { accountId, keyId, models, statuses }: CallFilter) => sql`
  ${accountId === undefined ? sql`` : sql`AND account_id = ${accountId}`}
  ${keyId === undefined ? sql`` : sql`AND key_id = ${keyId}`}
  ${models === undefined ? sql`` : sql`AND model = ANY (${models as string[]}::text[])`}
  ${statuses === undefined ? sql`` : sql`AND status = ANY (${statuses as string[]}::text[])`}`

async function callsIn(sql: Queryable, which: ReturnType<Queryable>): Promise<OperatorCall[]> {
  const rows = await sql<Row[]>`
    SELECT u.*, k.name AS key_name, k.prefix AS key_prefix
    FROM (SELECT ${sql(COLUMNS)} FROM usage_rows ${which}) AS u LEFT JOIN api_keys AS k ON k.id = u.key_id
    ORDER BY u.id`
  return rows.map(toCall)
}

interface Span {
  /** Counts no more. */
  readonly after: bigint
  /** Counts. */
  readonly upto: bigint
}

async function readSpan(
  sql: Queryable,
  { after, upto }: Span,
  filter: CallFilter,
  newest: number | null,
): Promise<OperatorCall[]> {
  return callsIn(
    sql,
    sql`WHERE id > ${after} AND id <= ${upto} ${narrowing(sql, filter)}
      ${newest === null ? sql`` : sql`ORDER BY id DESC LIMIT ${newest}`}`,
  )
}

/** Returns the newest id. When a row is visible, all rows with lower ids are: see `usage_rows`. */
async function newestId(sql: Queryable): Promise<bigint> {
  const [row] = await sql<{ id: bigint }[]>`SELECT id FROM usage_rows ORDER BY id DESC LIMIT 1`
  return row?.id ?? 0n
}

/** Returns the newest calls that pass the filter, from the last `LOOK_BACK_ROWS` rows. */
export async function newestCalls(sql: Sql, filter: CallFilter, count: number): Promise<NewestCalls> {
  const upto = await newestId(sql)
  // Ids follow the clock: how many rows are between two of them is counted.
  const [last] = await sql<{ id: bigint }[]>`
    SELECT id FROM usage_rows WHERE id <= ${upto} ORDER BY id DESC OFFSET ${LOOK_BACK_ROWS} LIMIT 1`
  const after = last?.id ?? 0n
  const calls = count === 0 ? [] : await readSpan(sql, { after, upto }, filter, count)
  return { calls, upto, isCut: after > 0n && calls.length < count }
}

/** Returns calls with a higher id, each exactly once to a reader that continues from `upto`. */
export async function callsSince(sql: Sql, filter: CallFilter, after: bigint): Promise<CallsSince> {
  const newest = await newestId(sql)
  const [last] = await sql<[{ id: bigint | null }]>`
    SELECT max(id) AS id FROM (
      SELECT id FROM usage_rows WHERE id > ${after} AND id <= ${newest} ORDER BY id LIMIT ${SINCE_ROWS}
    ) AS next`
  const upto = last.id ?? after
  const calls = upto > after ? await readSpan(sql, { after, upto }, filter, null) : []
  return { calls, upto, hasMore: newest > upto }
}

/** Returns the call with this request id, of this task, or with this numeric id. */
export async function callOf(sql: Queryable, ref: string | bigint): Promise<OperatorCall | null> {
  const [call] = await callsIn(
    sql,
    typeof ref === 'bigint' ? sql`WHERE id = ${ref}` : sql`WHERE request_id = ${ref} OR task_id = ${ref}`,
  )
  if (call !== undefined) return call
  return typeof ref === 'bigint' ? null : sharedCallOf(sql, ref)
}

/** A shared row is booked soon after its calls; one that waited longer for its booking is found in the call log. */
const SHARED_BOOKED_WITHIN_MS = 86_400_000
const CLOCK_SKEW_MS = 60_000

/** Returns the row that stands for the refused call with this request id, and for others. */
async function sharedCallOf(sql: Queryable, requestId: string): Promise<OperatorCall | null> {
  const sharedId = sharedIdOf(requestId)
  if (sharedId === null) return null
  // Ids of rows follow the clock, in microseconds.
  const [call] = await callsIn(
    sql,
    sql`WHERE call_count > 1 AND id >= (id_ms(${requestId}) - ${CLOCK_SKEW_MS}) * 1000
      AND id < (id_ms(${requestId}) + ${SHARED_BOOKED_WITHIN_MS}) * 1000
      AND position(${sharedId} IN detail) > 0`,
  )
  return call ?? null
}
