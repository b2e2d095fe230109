/** States of the running service that operators set. */
import { onPool, type Pools } from '../repository.ts'
import * as channelHolds from './channel-holds.ts'
import * as configuration from './configuration.ts'
import * as jobs from './jobs.ts'
import * as journals from './journals.ts'
import * as retryTask from './retry-task.ts'

export type Operation = ReturnType<typeof openOperation>

export const openOperation = ({ main }: Pools) =>
  onPool(main, { ...channelHolds, ...configuration, ...jobs, ...journals, ...retryTask })
