/** Fills the sums without keys with the calls that are there and lets a view feed them from then on, as 005 does. */
import type { ClickHouseClient } from '@clickhouse/client'
import { createView, fillByDay } from '../calls-by-day.ts'
import { copiedForGood } from '../copied-for-good.ts'
import { LIVE_NAMES } from '../log-names.ts'
import { fixFilledUpto } from '../marks.ts'
import type { MigrationContext } from '../migrate.ts'

export async function apply(client: ClickHouseClient, context: MigrationContext): Promise<void> {
  const proposed = await copiedForGood(client, context)
  const upto = await fixFilledUpto(client, 'calls_by_model_filled_upto', proposed)
  await createView(client, LIVE_NAMES, LIVE_NAMES.byModel, upto)
  await fillByDay(client, LIVE_NAMES, LIVE_NAMES.byModel, upto)
}
