/**
 * Lets the views sum the calls that rows stand for, and pass the count on to the failed calls. Each view is changed in one
 * step, from the same id on as before: no insert is missed, and none is counted by both.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import { selectFailed } from '../pages/failed-calls.ts'
import { selectByDay } from '../summaries/calls-by-day.ts'
import { type FilledUpto, fixFilledUpto } from '../tables/marks.ts'
import { LIVE_NAMES } from '../tables/names.ts'

export async function apply(client: ClickHouseClient): Promise<void> {
  const { calls, byDay, byModel, failedView } = LIVE_NAMES
  const change = async (view: string, filled: FilledUpto, select: (condition: string) => string) => {
    const upto = await fixFilledUpto(client, filled, 0n)
    await client.command({ query: `ALTER TABLE ${view} MODIFY QUERY ${select(`id > ${upto}`)}` })
  }
  await change(byDay.view, 'calls_by_day_filled_upto', (condition) =>
    selectByDay(calls, byDay, condition, 'sum(call_count)'),
  )
  await change(byModel.view, 'calls_by_model_filled_upto', (condition) =>
    selectByDay(calls, byModel, condition, 'sum(call_count)'),
  )
  await change(failedView, 'calls_failed_filled_upto', (condition) =>
    selectFailed(calls, condition, 'detail'),
  )
}
