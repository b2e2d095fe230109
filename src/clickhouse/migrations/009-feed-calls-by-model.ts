/** Fills the sums without keys with the calls that are there and lets a view feed them from then on, as 005 does. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { MigrationContext } from '../migrate.ts'
import { createView, fillByDay } from '../summaries/calls-by-day.ts'
import { durablyCopiedUpto } from '../tables/copied-for-good.ts'
import { fixFilledUpto } from '../tables/marks.ts'
import { LIVE_NAMES } from '../tables/names.ts'

export async function apply(client: ClickHouseClient, context: MigrationContext): Promise<void> {
  const proposed = await durablyCopiedUpto(client, context)
  const upto = await fixFilledUpto(client, 'calls_by_model_filled_upto', proposed)
  await createView(client, LIVE_NAMES, LIVE_NAMES.byModel, upto)
  await fillByDay(client, LIVE_NAMES, LIVE_NAMES.byModel, upto)
}
