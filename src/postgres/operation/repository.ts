/** States of the running service that operators set. */

import type { ChannelHold, HeldState } from '../../../schemas/config/channel-report.ts'
import { recordOperation } from '../accounts/audit-record.ts'
import type { Sql } from '../connection.ts'
import { onPool, type Pools } from '../repository.ts'
import {
  countTasksByChannel,
  holdChannel,
  listChannelHolds,
  recordChannelTest,
  resumeChannel,
} from './channel-holds.ts'
import {
  cancelJob,
  claimJob,
  endJob,
  type Job,
  type JobKind,
  type JobOutcome,
  type JobsQuery,
  listJobs,
  type NewJob,
  readJob,
  releaseJob,
  reportJob,
  startJob,
} from './jobs.ts'
import {
  announceWallets,
  endJournal,
  type JournalEnd,
  type JournalHeartbeat,
  listJournals,
  listReservedCalls,
  lockSilentJournal,
  type RegisteredJournal,
  recordDrained,
  recordHeartbeat,
  recordSilentJournals,
} from './journals.ts'
import {
  listStatusNotes,
  type NewStatusNote,
  postStatusNote,
  type StatusNote,
  type StatusNotesQuery,
  type StatusUpdate,
  updateStatusNote,
} from './status-notes.ts'

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
  start(job: NewJob): Promise<Job>
  cancel(id: string): Promise<Job>
  read(id: string): Promise<Job>
  list(jobsQuery: JobsQuery): Promise<Job[]>
  claim(kinds: readonly JobKind[]): Promise<Job | null>
  release(id: string): Promise<void>
  report(id: string, done: number, total: number): Promise<boolean>
  end(id: string, jobOutcome: JobOutcome): Promise<void>
}

export interface Journals {
  recordHeartbeat(journal: JournalHeartbeat): Promise<void>
  recordDrained(id: string): Promise<void>
  list(): Promise<RegisteredJournal[]>
  lockSilent(id: string): Promise<RegisteredJournal>
  readReserved(journalId: string): Promise<object[]>
  end(journal: RegisteredJournal, journalEnd: JournalEnd): Promise<void>
  announceWallets(accountIds: readonly string[]): Promise<void>
  recordSilent(): Promise<number>
}

export interface StatusNotes {
  list(query: StatusNotesQuery): Promise<StatusNote[]>
  post(note: NewStatusNote): Promise<StatusNote>
  update(id: string, update: StatusUpdate): Promise<StatusNote>
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
    listHolds: listChannelHolds,
    hold: holdChannel,
    resume: resumeChannel,
    recordTest: recordChannelTest,
    countTasks: countTasksByChannel,
  }),
  configurations: onPool(main, { record: recordConfiguration }),
  jobs: onPool(main, {
    start: startJob,
    cancel: cancelJob,
    read: readJob,
    list: listJobs,
    claim: claimJob,
    release: releaseJob,
    report: reportJob,
    end: endJob,
  }),
  journals: onPool(main, {
    recordHeartbeat,
    recordDrained,
    list: listJournals,
    lockSilent: lockSilentJournal,
    readReserved: listReservedCalls,
    end: endJournal,
    announceWallets,
    recordSilent: recordSilentJournals,
  }),
  statusNotes: onPool(main, { list: listStatusNotes, post: postStatusNote, update: updateStatusNote }),
})

/** Records that the configuration file was replaced. @param difference contains no secrets */
const recordConfiguration = (sql: Sql, difference: object): Promise<void> =>
  recordOperation(sql, {
    action: 'configuration.apply',
    accountId: null,
    subjectId: 'configuration',
    after: difference,
  })
