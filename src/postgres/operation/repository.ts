/** States of the running service that operators set. */

import type { ChannelHold, HeldState } from '../../../schemas/config/channel-report.ts'
import { recordOperation } from '../accounts/audit-record.ts'
import type { Sql } from '../connection.ts'
import { onPool, type Pools } from '../repository.ts'
import * as channelHolds from './channel-holds.ts'
import * as jobs from './jobs.ts'
import * as journals from './journals.ts'
import * as statusNotes from './status-notes.ts'

export interface Channels {
  listHolds(): Promise<ChannelHold[]>
  hold(id: string, state: HeldState): Promise<void>
  resume(id: string): Promise<void>
  recordTest(id: string, call: { readonly model: string }): Promise<void>
  countTasks(): Promise<ReadonlyMap<string, number>>
}

export interface Configurations {
  record(difference: object): Promise<void>
}

export interface Jobs {
  start(job: jobs.NewJob): Promise<jobs.Job>
  cancel(id: string): Promise<jobs.Job>
  read(id: string): Promise<jobs.Job>
  list(jobsQuery: jobs.JobsQuery): Promise<jobs.Job[]>
  claim(kinds: readonly jobs.JobKind[]): Promise<jobs.Job | null>
  release(id: string): Promise<void>
  report(id: string, done: number, total: number): Promise<boolean>
  end(id: string, jobOutcome: jobs.JobOutcome): Promise<void>
}

export interface Journals {
  recordHeartbeat(journal: journals.JournalHeartbeat): Promise<void>
  recordDrained(id: string): Promise<void>
  list(): Promise<journals.RegisteredJournal[]>
  lockSilent(id: string): Promise<journals.RegisteredJournal>
  readReserved(journalId: string): Promise<object[]>
  end(journal: journals.RegisteredJournal, journalEnd: journals.JournalEnd): Promise<void>
  announceWallets(accountIds: readonly string[]): Promise<void>
  recordSilent(): Promise<number>
}

export interface StatusNotes {
  list(query: statusNotes.StatusNotesQuery): Promise<statusNotes.StatusNote[]>
  post(note: statusNotes.NewStatusNote): Promise<statusNotes.StatusNote>
  update(id: string, update: statusNotes.StatusUpdate): Promise<statusNotes.StatusNote>
}

export interface OperationRepositories {
  readonly channels: Channels
  readonly configurations: Configurations
  readonly jobs: Jobs
  readonly journals: Journals
  readonly statusNotes: StatusNotes
}

export const openOperation = ({ main }: Pools): OperationRepositories => ({
  channels: onPool(main, {
    listHolds: channelHolds.listChannelHolds,
    hold: channelHolds.holdChannel,
    resume: channelHolds.resumeChannel,
    recordTest: channelHolds.recordChannelTest,
    countTasks: channelHolds.countTasksByChannel,
  }),
  configurations: onPool(main, { record: recordConfiguration }),
  jobs: onPool(main, {
    start: jobs.startJob,
    cancel: jobs.cancelJob,
    read: jobs.readJob,
    list: jobs.listJobs,
    claim: jobs.claimJob,
    release: jobs.releaseJob,
    report: jobs.reportJob,
    end: jobs.endJob,
  }),
  journals: onPool(main, {
    recordHeartbeat: journals.recordHeartbeat,
    recordDrained: journals.recordDrained,
    list: journals.listJournals,
    lockSilent: journals.lockSilentJournal,
    readReserved: journals.listReservedCalls,
    end: journals.endJournal,
    announceWallets: journals.announceWallets,
    recordSilent: journals.recordSilentJournals,
  }),
  statusNotes: onPool(main, {
    list: statusNotes.listStatusNotes,
    post: statusNotes.postStatusNote,
    update: statusNotes.updateStatusNote,
  }),
})

/** Records that the configuration file was replaced. @param difference contains no secrets */
const recordConfiguration = (sql: Sql, difference: object): Promise<void> =>
  recordOperation(sql, {
    action: 'configuration.apply',
    accountId: null,
    subjectId: 'configuration',
    after: difference,
  })
