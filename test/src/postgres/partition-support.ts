/** Makes what a database has eight months older, so that retention takes it away. */
import type { Sql } from '../../../src/postgres/connection.ts'

const MONTHS = 8
const MS = MONTHS * 31 * 86_400_000
const GUARDED = ['usage_rows', 'ledger_entries', 'audit_entries'] as const

/** Runs `work` on rows that refuse to be changed otherwise. */
export async function unguarded(sql: Sql, work: () => Promise<unknown>): Promise<void> {
  for (const table of GUARDED) await sql`ALTER TABLE ${sql(table)} DISABLE TRIGGER USER`
  await work()
  for (const table of GUARDED) await sql`ALTER TABLE ${sql(table)} ENABLE TRIGGER USER`
}

/** Moves all rows back, and ends the partition of the past four months ago. All rows count as copied to the call log. */
export async function makeOld(sql: Sql): Promise<void> {
  await unguarded(sql, async () => {
    await sql`
      UPDATE usage_rows SET id = id - ${MS}::bigint * 1000, submitted_at = submitted_at - ${MS},
        created_at = created_at - ${MS}, booked_at = booked_at - ${MS}`
    await sql`UPDATE ledger_entries SET created_at = created_at - make_interval(secs => ${MS / 1000})`
    await sql`UPDATE audit_entries SET at = at - make_interval(secs => ${MS / 1000})`
    await sql`
      UPDATE tasks SET submitted_at = submitted_at - ${MS}, touched_at = touched_at - ${MS}, ended_at = ended_at - ${MS}`
    await sql`
      UPDATE holds SET created_at = created_at - make_interval(secs => ${MS / 1000}),
        closed_at = closed_at - make_interval(secs => ${MS / 1000})`
  })
  await sql`
    UPDATE partitions SET ends_at = months_later(date_trunc('month', now(), 'UTC'), -4) WHERE name LIKE '%\\_past'`
  await sql`UPDATE usage_copy SET copied_upto = (SELECT coalesce(max(id), 0) FROM usage_rows)`
}
