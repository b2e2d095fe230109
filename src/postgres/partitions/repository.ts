/** Partitions by month, as the process that makes and retires them and operators use them. */
import { onPool, type Pools } from '../repository.ts'
import { makePartitions } from './make.ts'
import * as retire from './retire.ts'

export interface Partitions {
  make(): Promise<string[]>
  retire(retention: retire.Retention): Promise<retire.RetirementReport>
  list(): Promise<retire.Partition[]>
}

export const openPartitions = ({ main, auditing }: Pools): Partitions => ({
  ...onPool(auditing, { make: makePartitions, retire: retire.retirePartitions }),
  ...onPool(main, { list: retire.listPartitions }),
})
