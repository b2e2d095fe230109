import postgres from 'postgres'
import { isTooDeep, parseExactJson } from '../core/json/exact.ts'
import { ARRAY_TYPES } from './array-types.ts'

export type Sql = postgres.Sql<{ bigint: bigint }>
/** A pool or an open transaction: what one statement runs on. */
export type Queryable = postgres.ISql<{ bigint: bigint }>

const CONNECT_TIMEOUT_SECONDS = 5
/** With the kernel's ten probes a second apart, a peer that vanished is noticed within 15 seconds. */
const KEEP_ALIVE_SECONDS = 5
const RECONNECT_FIRST_SECONDS = 0.05
/** Also how long a database that came back may go unnoticed. */
const RECONNECT_MAX_SECONDS = 0.5

const reconnectDelay = (attempts: number): number =>
  Math.min(RECONNECT_FIRST_SECONDS * 2 ** Math.min(attempts, 10), RECONNECT_MAX_SECONDS)

export interface ConnectOptions {
  readonly max: number
  /** Shown in `pg_stat_activity`. */
  readonly name: string
  /** Close a connection that was idle for so long. Default: keep it. */
  readonly idleSeconds?: number
  /** Replace a connection of this age; null never. Default: the client's, 30 to 60 minutes. */
  readonly lifetimeSeconds?: null
  /** Let the server end a statement that takes longer. Default: it may take any time. */
  readonly statementTimeoutMs?: number
  /** Plan each prepared statement once, whatever its parameters. Default: the server weighs it. */
  readonly plansOnce?: boolean
  /**
   * Through a pooler in transaction mode: statements are not prepared by name, one waits for the other, and the server's
   * settings are those of the role.
   */
  readonly isPooled?: boolean
  /** Whom the audit record names. */
  readonly actor?: string
}

const JSON_OID = 114
const JSONB_OID = 3802

/** A task's job holds what its client sent, and the digits of its numbers. */
const EXACT_JSON = {
  to: JSON_OID,
  from: [JSON_OID, JSONB_OID],
  serialize: (value: unknown) => JSON.stringify(value),
  // A row from before bodies had a limit of levels is read all the same.
  parse: (text: string): unknown => (isTooDeep(text) ? JSON.parse(text) : parseExactJson(text)),
}

/** Returns a pool that connects when first used. BIGINT is read as `bigint`, timestamps as `Date`. */
export function connect(url: string, options: ConnectOptions): Sql {
  return postgres(url, {
    max: options.max,
    types: { bigint: postgres.BigInt, json: EXACT_JSON, ...ARRAY_TYPES },
    fetch_types: false,
    connect_timeout: CONNECT_TIMEOUT_SECONDS,
    keep_alive: KEEP_ALIVE_SECONDS,
    backoff: reconnectDelay,
    ...(options.idleSeconds === undefined ? {} : { idle_timeout: options.idleSeconds }),
    ...(options.lifetimeSeconds === undefined ? {} : { max_lifetime: options.lifetimeSeconds }),
    onnotice: () => {},
    ...(options.isPooled && { prepare: false, max_pipeline: 1 }),
    connection: {
      application_name: options.name,
      TimeZone: 'UTC',
      DateStyle: 'ISO',
      ...(options.isPooled ? {} : sessionSettings(options)),
    },
  })
}

const sessionSettings = (options: ConnectOptions) => ({
  ...(options.statementTimeoutMs === undefined ? {} : { statement_timeout: options.statementTimeoutMs }),
  ...(options.plansOnce && { plan_cache_mode: 'force_generic_plan' }),
  ...(options.actor === undefined ? {} : { 'tollgate.actor': options.actor }),
})
