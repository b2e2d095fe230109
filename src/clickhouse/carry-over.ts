/**
 * Carries over a call log whose tables were created by the seventeen migrations that Tollgate had before there was one
 * for each table. Both create the same tables, so that only the record of applied migrations changes. Views keep their
 * condition on the ids of calls: calls with lower ids were filled in, and none of them is sent again. They are not
 * modified, because ClickHouse would count a range twice that is sent before and after that.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import { type Migration, register, unregisterOthers } from './tables/register.ts'

const FORMER_FIRST = '001-calls.sql'
const FORMER_LAST = '017-sum-call-counts.ts'
/** The first six migrations create the tables of the seventeen. */
const MAKE_THE_SAME = 6

export const isBeforeSquash = (applied: ReadonlySet<string>): boolean => applied.has(FORMER_FIRST)

/**
 * Records the present migrations in place of the former ones. No row of another table changes. The former record is
 * removed last, and the next start completes an interrupted one.
 * @throws Error unless all seventeen were applied
 */
export async function carryOver(
  client: ClickHouseClient,
  applied: ReadonlySet<string>,
  migrations: readonly Migration[],
): Promise<void> {
  const present = migrations.slice(0, MAKE_THE_SAME)
  const isRecorded = present.every(({ file }) => applied.has(file))
  if (!isRecorded && !applied.has(FORMER_LAST))
    throw new Error(
      `The call log in ClickHouse cannot be carried over: it has the former migrations up to ${[...applied].sort().at(-1)}, and this version needs all of them up to ${FORMER_LAST}. Start a version of Tollgate that has ${FORMER_LAST} first, then this one; or drop the tables in this database, and run \`tollgate logs rebuild\``,
    )
  if (!isRecorded) await register(client, present)
  await unregisterOthers(client, present)
}
