/** The way to ClickHouse: one client, the rows that it reads, and what becomes of its errors. */
import {
  type ClickHouseClient,
  ClickHouseError,
  ClickHouseLogLevel,
  createClient,
  type QueryParams,
} from '@clickhouse/client'
import { Failure } from '../../schemas/failure.ts'

/** Longer than any query here may take; a server that does not answer by then counts as away. */
const REQUEST_TIMEOUT_MS = 15_000
/** The server itself stops a query after this long. */
const MAX_EXECUTION_SECONDS = 10
const MAX_OPEN_CONNECTIONS = 16

/** ClickHouse's error codes that pass by themselves: too many queries at once, memory limit, timeout, read-only. */
const PASSING_ERROR_CODES = new Set(['159', '164', '202', '209', '210', '241'])
const UNKNOWN_TABLE_CODE = '60'

/** Connects. `url` has user, password and database too: `http://user:password@host:8123/database`. */
export function connect(url: string): ClickHouseClient {
  return createClient({
    url,
    application: 'tollgate',
    request_timeout: REQUEST_TIMEOUT_MS,
    max_open_connections: MAX_OPEN_CONNECTIONS,
    log: { level: ClickHouseLogLevel.OFF },
    clickhouse_settings: {
      max_execution_time: MAX_EXECUTION_SECONDS,
      output_format_json_quote_64bit_integers: 1,
    },
  })
}

/** Returns the rows of a query. 64-bit numbers come as strings. */
export async function readRows<Row>(
  client: ClickHouseClient,
  query: Omit<QueryParams, 'format'>,
): Promise<Row[]> {
  const answer = await client.query({ ...query, format: 'JSONEachRow' })
  return answer.json<Row>()
}

export const isUnknownTable = (error: unknown): boolean =>
  error instanceof ClickHouseError && error.code === UNKNOWN_TABLE_CODE

/** Turns an error of the ClickHouse client into the failure that API clients get while ClickHouse is down; returns any other error unchanged. */
export function toFailure(error: unknown): unknown {
  if (error instanceof Failure) return error
  if (error instanceof ClickHouseError && !PASSING_ERROR_CODES.has(error.code)) return error
  return new Failure('service_unavailable', 'The call log cannot be read at the moment. Try again shortly.', {
    internal: `ClickHouse: ${(error as Error).message}`,
    headers: [['retry-after', '2']],
  })
}
