/**
 * Fills the rollup with the calls that are there and lets a view feed it from then on: each call by one of the two.
 * What parts them is an id, fixed once. Nobody inserts while this is open, because a process migrates before it inserts; and
 * a range that was broken off before is sent again whole, so all of it must come by the view: PostgreSQL knows up to
 * where nothing will be sent again. Each step does nothing the second time, for a process that comes second or one
 * that goes on where another was broken off.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import type { MigrationContext } from '../migrate.ts'
import { createView, fillByDay } from '../summaries/calls-by-day.ts'
import { durablyCopiedUpto } from '../tables/copied-for-good.ts'
import { fixFilledUpto } from '../tables/marks.ts'
import { LIVE_NAMES } from '../tables/names.ts'

export async function apply(client: ClickHouseClient, context: MigrationContext): Promise<void> {
  const proposed = await durablyCopiedUpto(client, context)
  const upto = await fixFilledUpto(client, 'calls_by_day_filled_upto', proposed)
  await createView(client, LIVE_NAMES, LIVE_NAMES.byDay, upto)
  await fillByDay(client, LIVE_NAMES, LIVE_NAMES.byDay, upto)
}
