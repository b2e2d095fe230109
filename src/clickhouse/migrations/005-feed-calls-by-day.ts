/**
 * Fills the rollup with the calls that are there and lets a view feed it from then on: each call by one of the two.
 * What parts them is an id, fixed once. Nobody inserts while this is open, because whoever inserts migrates first; and
 * a range that was broken off before is sent again whole, so all of it must come by the view: PostgreSQL knows up to
 * where nothing will be sent again. Each step does nothing the second time, for a process that comes second or one
 * that goes on where another was broken off.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import { createView, fillByDay, LIVE_NAMES } from '../calls-by-day.ts'
import { fixFilledUpto } from '../marks.ts'
import type { MigrationContext } from '../migrate.ts'

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b)

export async function apply(client: ClickHouseClient, { copiedUpto }: MigrationContext): Promise<void> {
  const answer = await client.query({ query: 'SELECT max(id) AS id FROM calls', format: 'JSONEachRow' })
  const [newest] = await answer.json<{ id: string }>()
  const present = BigInt(newest!.id)
  const proposed = copiedUpto === undefined ? present : least(present, await copiedUpto())
  const upto = await fixFilledUpto(client, proposed)
  await createView(client, LIVE_NAMES, upto)
  await fillByDay(client, LIVE_NAMES, upto)
}
