/** Partitions by month, as the process that makes and retires them and operators use them. */
import { onPool, type Pools } from '../repository.ts'
import { makePartitions } from './make.ts'
import {
  listPartitions,
  type Partition,
  type Retention,
  type RetirementReport,
  retirePartitions,
} from './retire.ts'

export interface Partitions {
  make(): Promise<string[]>
  retire(retention: Retention): Promise<RetirementReport>
  list(): Promise<Partition[]>
}

export const openPartitions = ({ main, auditing }: Pools): Partitions => ({
  ...onPool(auditing, { make: makePartitions, retire: retirePartitions }),
  ...onPool(main, { list: listPartitions }),
})
