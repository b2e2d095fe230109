/** Fills the table of failed calls with those that are there and lets a view feed it from then on, as 005 does the sums. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { MigrationContext } from '../migrate.ts'
import { createFailedView, fillFailed } from '../pages/failed-calls.ts'
import { durablyCopiedUpto } from '../tables/copied-for-good.ts'
import { fixFilledUpto } from '../tables/marks.ts'
import { LIVE_NAMES } from '../tables/names.ts'

export async function apply(client: ClickHouseClient, context: MigrationContext): Promise<void> {
  const proposed = await durablyCopiedUpto(client, context)
  const upto = await fixFilledUpto(client, 'calls_failed_filled_upto', proposed)
  await createFailedView(client, LIVE_NAMES, upto)
  await fillFailed(client, LIVE_NAMES, upto)
}
