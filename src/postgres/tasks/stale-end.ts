/** The end of a session, reported once more in the next one. */
import type { Sql } from '../connection.ts'
import { isSessionEnded } from '../errors.ts'

/**
 * Calls `send` again after a stale error. When the server ends a session during a statement, the client (3.4.9) also
 * rejects the first statement that uses the connection again: with that old error, and without sending it. Each
 * connection of a pool can hold one such error. So `send` must only read, or begin a transaction.
 */
export async function retryOnStaleEnd<T>(sql: Sql, send: () => Promise<T>): Promise<T> {
  for (let stale = 0; ; stale++) {
    try {
      return await send()
    } catch (error) {
      if (stale === sql.options.max || !isSessionEnded(error)) throw error
    }
  }
}
