/** Acts of the months of the tables that grow for ever. */
import { listPartitions } from '../../../schemas/management/partitions.ts'
import { implement } from '../act.ts'

export const partitionActs = [
  implement(listPartitions, async ({ database }) => ({
    object: 'list' as const,
    data: (await database.listPartitions()).map(({ name, table, startsAt, endsAt, state, ...partition }) => ({
      name,
      table,
      from: startsAt?.toISOString() ?? null,
      to: endsAt.toISOString(),
      state,
      rows: Number(partition.rows),
      bytes: Number(partition.bytes),
      retired_at: partition.retiredAt?.toISOString() ?? null,
    })),
  })),
]
