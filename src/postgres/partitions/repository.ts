/** Partitions by month, as the process that makes and retires them and operators use them. */
import { onPool, type Pools } from '../repository.ts'
import { makePartitions } from './make.ts'
import { listPartitions, retirePartitions } from './retire.ts'

export type Partitions = ReturnType<typeof openPartitions>

export const openPartitions = ({ main, auditing }: Pools) => ({
  ...onPool(auditing, { makePartitions, retirePartitions }),
  ...onPool(main, { listPartitions }),
})
