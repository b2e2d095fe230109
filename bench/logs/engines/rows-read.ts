/** How many rows ClickHouse reads for an answer: by its own count, which is kept for the whole server. */
import type { Statements } from './clickhouse-statements.ts'

const COUNTED = `SELECT value FROM system.events WHERE event = 'SelectedRows'`

/** Rows read while the work is done; nobody else is to ask the server meanwhile. */
export const countReadRows = async (
  statements: Statements,
  work: () => Promise<unknown>,
): Promise<number> => {
  const counted = async (): Promise<number> => {
    const [row] = await statements.rows<{ value: string }>(COUNTED)
    return Number(row?.value ?? 0)
  }
  const first = await counted()
  // Looking at the count is counted as well.
  const before = await counted()
  await work()
  return Math.max(0, (await counted()) - before - (before - first))
}
