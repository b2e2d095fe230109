/** Statements through a pooler in transaction mode: a connection sends the next one after the answer to the last. */
import type postgres from 'postgres'

type Sql = postgres.Sql<{ bigint: bigint }>

/** A statement of the client (3.4.9), which asks this option whether its connection may send another one meanwhile. */
interface Statement {
  readonly options: { onexecute?: () => boolean }
}

const isStatement = (value: unknown): value is Statement =>
  typeof value === 'object' && value !== null && 'options' in value && 'executed' in value

function alone<T>(statement: T): T {
  if (isStatement(statement)) statement.options.onexecute = () => false
  return statement
}

/**
 * Returns the pool with one statement at a time on each connection. The client sends two even where `max_pipeline` is 1.
 * PgBouncer gives the server back at the answer to the first, and where the second is one whose parameters are described
 * first, its answer is lost: the connection waits for ever. Inside a transaction the server stays, and statements may
 * follow each other.
 */
export function oneAtATime<S extends Sql>(sql: S): S {
  return new Proxy(sql, {
    apply: (target, _this, args: unknown[]) => alone(Reflect.apply(target, undefined, args)),
    get: (target, name) =>
      name === 'unsafe'
        ? (...args: Parameters<Sql['unsafe']>) => alone(target.unsafe(...args))
        : Reflect.get(target, name),
  })
}
