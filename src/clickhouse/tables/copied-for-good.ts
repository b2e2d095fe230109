import type { ClickHouseClient } from '@clickhouse/client'
import type { MigrationContext } from '../migrate.ts'

/**
 * The calls with ids up to this one are all there, and none of them is sent again: a range that was broken off is sent
 * whole, and PostgreSQL knows up to where nothing is.
 */
export async function durablyCopiedUpto(
  client: ClickHouseClient,
  { copiedUpto }: MigrationContext,
): Promise<bigint> {
  const answer = await client.query({ query: 'SELECT max(id) AS id FROM calls', format: 'JSONEachRow' })
  const [newest] = await answer.json<{ id: string }>()
  const present = BigInt(newest!.id)
  if (copiedUpto === undefined) return present
  const upto = await copiedUpto()
  return upto < present ? upto : present
}
