import postgres, { type ISql } from 'postgres'
import { isTooDeep, parseExactJson } from '../core/json/exact.ts'
import { ARRAY_TYPES } from './array-types.ts'
import { openPool, type Sql } from './pool.ts'
import { parseServerUrl } from './servers/address.ts'
import { closeSockets, openSockets } from './servers/cluster.ts'
import type { Sockets } from './servers/sockets.ts'

export type { Sql }
/** A pool or an open transaction: what one statement runs on. */
export type Queryable = ISql<{ bigint: bigint }>

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
  /** Closes a connection that has been idle this long. Default: keep it. */
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
  /** Of several hosts without `target_session_attrs` use a standby. */
  readonly isReading?: boolean
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
  // A row nests deeper than the body that it holds, which may be as deep as a body may be.
  parse: (text: string): unknown => (isTooDeep(text) ? JSON.parse(text) : parseExactJson(text)),
}

const SOCKETS = new WeakMap<object, Sockets>()

/**
 * Returns a pool that connects when first used. BIGINT is read as `bigint`, timestamps as `Date`. Of several hosts in
 * the URL each connection leads to the one that takes writes, or that `target_session_attrs` asks for.
 */
export function connect(url: string, options: ConnectOptions): Sql {
  const server = parseServerUrl(url, options.isReading ? 'standby' : 'read-write')
  const sockets = openSockets(url, server)
  const open = () =>
    postgres(server.url, {
      ...makePostgresOptions(options),
      ...(server.tls !== null && { ssl: server.tls }),
      // The client (3.4.9) takes a standby for `read-write`, and tries hosts of which none answers without a pause.
      socket: () => sockets.open(),
    } as Parameters<typeof postgres>[1]) as unknown as Sql
  const { sql, renew } = openPool(open, {
    isPooled: options.isPooled,
    onEnd: () => closeSockets(url, server, sockets),
  })
  sockets.onDrop = renew
  SOCKETS.set(sql, sockets)
  return sql
}

/** The client (3.4.9) waits forever for the end of a connection that was lost while it was being set up. */
const CLOSE_SECONDS = 1

/** Runs `work` on one connection, which it opens for that. */
export async function onConnection<T>(url: string, name: string, work: (sql: Sql) => Promise<T>): Promise<T> {
  const sql = connect(url, { max: 1, name })
  try {
    return await work(sql)
  } finally {
    await sql.end({ timeout: CLOSE_SECONDS })
  }
}

/** Returns true where a URL names several servers and a commit waits only for the primary: a failover may then lose it. */
export async function losesCommits(url: string): Promise<boolean> {
  if (parseServerUrl(url, 'read-write').addresses.length === 1) return false
  return onConnection(url, 'tollgate start', async (sql) => {
    const [row] = await sql<[{ standbys: string; waits: string }]>`
      SELECT current_setting('synchronous_standby_names') AS standbys, current_setting('synchronous_commit') AS waits`
    return row.standbys === '' || row.waits === 'off' || row.waits === 'local'
  })
}

/** Ends the connections of a pool: statements under way fail as closed, and later ones get new connections. */
export const dropConnections = (sql: Sql): void => SOCKETS.get(sql)?.drop()

function makePostgresOptions(options: ConnectOptions) {
  return {
    max: options.max,
    types: { bigint: postgres.BigInt, json: EXACT_JSON, ...ARRAY_TYPES },
    fetch_types: false,
    connect_timeout: CONNECT_TIMEOUT_SECONDS,
    keep_alive: KEEP_ALIVE_SECONDS,
    backoff: reconnectDelay,
    ...(options.idleSeconds === undefined ? {} : { idle_timeout: options.idleSeconds }),
    ...(options.lifetimeSeconds === undefined ? {} : { max_lifetime: options.lifetimeSeconds }),
    onnotice: () => {},
    ...(options.isPooled && { prepare: false }),
    connection: {
      application_name: options.name,
      TimeZone: 'UTC',
      DateStyle: 'ISO',
      ...(options.isPooled ? {} : makeSessionSettings(options)),
    },
  }
}

const makeSessionSettings = (options: ConnectOptions) => ({
  ...(options.statementTimeoutMs === undefined ? {} : { statement_timeout: options.statementTimeoutMs }),
  ...(options.plansOnce && { plan_cache_mode: 'force_generic_plan' }),
  ...(options.actor === undefined ? {} : { 'tollgate.actor': options.actor }),
})
