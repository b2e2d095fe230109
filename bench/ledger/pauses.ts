/** The longest time for which a small booking waited while something else ran. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Sql } from '../../src/postgres/connection.ts'

const GAP_MS = 2

export interface Timed<T> {
  readonly value: T
  readonly ms: number
  /** The longest booking meanwhile. */
  readonly longestMs: number
}

/** Inserts a charge in a transaction under the lock of bookings, again and again, and takes it back. */
async function bookOnce(sql: Sql): Promise<void> {
  await sql
    .begin(async (transaction) => {
      await transaction`SELECT pg_advisory_xact_lock(7811001)`
      await transaction`
        INSERT INTO ledger_entries (account_id, kind, amount, ref) VALUES ('acc_1', 'charge', -1, 'req_probe')`
      throw ROLLED_BACK
    })
    .catch((error: unknown) => {
      if (error !== ROLLED_BACK) throw error
    })
}
const ROLLED_BACK = new Error('taken back')

export async function timed<T>(probing: Sql, work: () => Promise<T>): Promise<Timed<T>> {
  let isDone = false
  let longestMs = 0
  const probe = async () => {
    while (!isDone) {
      const from = performance.now()
      await bookOnce(probing)
      longestMs = Math.max(longestMs, performance.now() - from)
      await delay(GAP_MS)
    }
  }
  const probed = probe()
  const from = performance.now()
  try {
    const value = await work()
    return { value, ms: performance.now() - from, longestMs }
  } finally {
    isDone = true
    await probed
  }
}
