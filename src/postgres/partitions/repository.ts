/** Partitions by month, as the process that makes them uses them. */
import { onPool, type Pools } from '../repository.ts'
import { makePartitions } from './make.ts'

export type Partitions = ReturnType<typeof openPartitions>

export const openPartitions = ({ auditing }: Pools) => onPool(auditing, { makePartitions })
