/**
 * A pool of the client (3.4.9) that is replaced when a connection of it is lost. The client never sends again on a
 * connection that closed while a statement waited to be sent: each later use ends as CONNECT_TIMEOUT. A statement that
 * meets a connection between its error and its close waits forever.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type postgres from 'postgres'

export type Sql = postgres.Sql<{ bigint: bigint }>
/** Has `close`, which the types leave out: it ends each connection after the statements that it has. */
type Closable = Sql & { close(): Promise<void> }

export interface Pool {
  readonly sql: Sql
  /** Sends later statements over new connections. Those that were sent before keep theirs. */
  renew(): void
}

/** A statement of the client, which asks `onexecute` whether its connection may send another one meanwhile. */
interface Statement {
  reject(error: unknown): void
  readonly options: { onexecute?: () => boolean }
}

const LOST = new Set(['CONNECTION_CLOSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'])
/** Time for a replaced pool to send the statements that wait in it. */
const RETIRE_MS = 5_000
/** Longer than a statement may take. */
const CLOSE_MS = 60_000

interface PoolOptions {
  /**
   * A connection sends the next statement after the answer to the last. The client sends two even where `max_pipeline`
   * is 1: PgBouncer in transaction mode gives the server back at the answer to the first, and where the second is one
   * whose parameters are described first, its answer is lost. Inside a transaction the server stays.
   */
  readonly isPooled?: boolean
  readonly onEnd?: () => void
}

export function openPool(open: () => Sql, { isPooled = false, onEnd }: PoolOptions = {}): Pool {
  const first = open()
  const replaced = new Set<Sql>()
  let current = first
  let listening: Sql | null = null
  let isEnded = false

  const retire = async (pool: Sql): Promise<void> => {
    replaced.add(pool)
    await sleep(RETIRE_MS, undefined, { ref: false })
    // The client waits forever for a connection that was lost during a statement.
    await Promise.race([(pool as Closable).close(), sleep(CLOSE_MS, undefined, { ref: false })])
    await pool.end({ timeout: 0 })
    replaced.delete(pool)
  }
  const renew = (): void => {
    if (isEnded) return
    void retire(current)
    current = open()
  }
  const renewIfLost = (pool: Sql, error: unknown): void => {
    if (pool === current && isLost(pool, error)) renew()
  }
  const watch = <T>(pool: Sql, value: T): T => {
    if (!isStatement(value)) return value
    const { reject } = value
    value.reject = (error) => {
      renewIfLost(pool, error)
      reject(error)
    }
    if (isPooled) value.options.onexecute = () => false
    return value
  }
  const own: Partial<Sql> = {
    unsafe: (...args) => watch(current, current.unsafe(...args)),
    begin: (...args: never[]) => {
      const pool = current
      const done = pool.begin(...(args as unknown as Parameters<Sql['begin']>))
      done.catch((error: unknown) => renewIfLost(pool, error))
      return done as never
    },
    // The client listens again by itself, over a separate connection.
    listen: (...args) => {
      listening ??= open()
      return listening.listen(...args)
    },
    end: async (options) => {
      isEnded = true
      const ended = [current, ...(listening === null ? [] : [listening])].map((pool) => pool.end(options))
      const left = [...replaced].map((pool) => pool.end({ timeout: 0, ...options }))
      await Promise.all([...ended, ...left]).finally(onEnd)
    },
  }
  const sql = new Proxy(first, {
    apply: (_first, _this, args: unknown[]) => watch(current, Reflect.apply(current, undefined, args)),
    get: (_first, name) => Reflect.get(name in own ? own : current, name),
  })
  return { sql, renew }
}

/** Returns true unless no connection of the pool was ever made: the client waits between its attempts to make one. */
function isLost(pool: Sql, error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? `${error.code}` : ''
  return code === 'CONNECT_TIMEOUT' || (LOST.has(code) && 'server_version' in pool.parameters)
}

const isStatement = (value: unknown): value is Statement =>
  typeof value === 'object' && value !== null && 'options' in value && 'executed' in value
