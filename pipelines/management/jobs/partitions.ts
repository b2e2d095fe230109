/** Operations of the months of the tables that grow for ever. */
import { listPartitions } from '../../../schemas/management/partitions.ts'
import { shapeOf } from '../../../src/core/json/snake-case.ts'
import { implement } from '../operation.ts'
import { wholeList } from '../page.ts'

export const partitionOperations = [
  implement(listPartitions, async ({ database }) =>
    wholeList(
      (await database.partitions.list()).map(({ startsAt, endsAt, ...partition }) => ({
        ...shapeOf(partition),
        from: startsAt?.toISOString() ?? null,
        to: endsAt.toISOString(),
        rows: Number(partition.rows),
        bytes: Number(partition.bytes),
      })),
    ),
  ),
]
