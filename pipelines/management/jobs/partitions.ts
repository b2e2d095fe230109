/** Operations of the months of the tables that keep growing. */
import { listPartitions } from '../../../schemas/management/partitions.ts'
import { toApiShape } from '../../../src/core/json/snake-case.ts'
import { implement } from '../operation.ts'
import { toWholeList } from '../page.ts'

export const partitionOperations = [
  implement(listPartitions, async ({ database }) =>
    toWholeList(
      (await database.partitions.list()).map(({ startsAt, endsAt, ...partition }) => ({
        ...toApiShape(partition),
        from: startsAt?.toISOString() ?? null,
        to: endsAt.toISOString(),
        rows: Number(partition.rows),
        bytes: Number(partition.bytes),
      })),
    ),
  ),
]
