/** Fills the table of failed calls with those that are there and lets a view feed it from then on, as 005 does the sums. */
import type { ClickHouseClient } from '@clickhouse/client'
import { copiedForGood } from '../copied-for-good.ts'
import { createFailedView, fillFailed } from '../failed-calls.ts'
import { LIVE_NAMES } from '../log-names.ts'
import { fixFilledUpto } from '../marks.ts'
import type { MigrationContext } from '../migrate.ts'

export async function apply(client: ClickHouseClient, context: MigrationContext): Promise<void> {
  const proposed = await copiedForGood(client, context)
  const upto = await fixFilledUpto(client, 'calls_failed_filled_upto', proposed)
  await createFailedView(client, LIVE_NAMES, upto)
  await fillFailed(client, LIVE_NAMES, upto)
}
