/** States of the running service that operators set. */
import { onPool, type Pools } from '../repository.ts'
import {
  countTasksByChannel,
  holdChannel,
  listChannelHolds,
  recordChannelTest,
  resumeChannel,
} from './channel-holds.ts'
import { recordConfiguration } from './configuration.ts'
import { cancelJob, claimJob, endJob, listJobs, readJob, releaseJob, reportJob, startJob } from './jobs.ts'
import {
  announceWallets,
  callsReservedBy,
  endJournal,
  listJournals,
  lockSilentJournal,
  recordDrained,
  recordHeartbeat,
  recordSilentJournals,
} from './journals.ts'
import { renewTaskChain } from './retry-task.ts'

export type Operation = ReturnType<typeof openOperation>

export const openOperation = ({ main }: Pools) =>
  onPool(main, {
    listChannelHolds,
    holdChannel,
    resumeChannel,
    recordChannelTest,
    countTasksByChannel,
    recordConfiguration,
    renewTaskChain,
    startJob,
    cancelJob,
    readJob,
    listJobs,
    claimJob,
    reportJob,
    releaseJob,
    endJob,
    recordHeartbeat,
    recordDrained,
    listJournals,
    lockSilentJournal,
    callsReservedBy,
    endJournal,
    announceWallets,
    recordSilentJournals,
  })
