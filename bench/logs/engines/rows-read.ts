/** Counts the rows that ClickHouse reads, by its server-wide counter. */
import type { Statements } from './clickhouse-statements.ts'

const COUNTED = `SELECT value FROM system.events WHERE event = 'SelectedRows'`

/** Returns the rows read during the work. Nothing else may query the server meanwhile. */
export const countReadRows = async (
  statements: Statements,
  work: () => Promise<unknown>,
): Promise<number> => {
  const counted = async (): Promise<number> => {
    const [row] = await statements.rows<{ value: string }>(COUNTED)
    return Number(row?.value ?? 0)
  }
  const first = await counted()
  // Reading the counter counts too.
  const before = await counted()
  await work()
  return Math.max(0, (await counted()) - before - (before - first))
}
