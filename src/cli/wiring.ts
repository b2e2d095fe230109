/** What the command line needs of the rest; `main.ts` has it from the real engines. */
import type { RebuildProgress, RebuildResult } from '../../pipelines/call-log/rebuild.ts'
import type { TaskMessages } from '../../pipelines/tasks/worker/messages.ts'
import type { ProcessReport } from '../../schemas/config/channel-report.ts'
import type { ConfigFile } from '../../schemas/config/file.ts'
import type { CallLog } from '../clickhouse/call-log.ts'
import type { ConfigParts } from '../config/load.ts'
import type { Problem } from '../config/problem.ts'
import type { JournalTrace } from '../journal/find-call.ts'
import type { AuditedLog } from '../postgres/billing/audit-report.ts'
import type { Database } from '../postgres/database.ts'
import type { Task } from '../postgres/tasks/types.ts'
import type { ObjectStore } from '../storage/store.ts'

export interface Books {
  readonly database: Database
  readonly log: AuditedLog
}

export interface UsageBooks {
  readonly database: Database
  readonly log: Pick<CallLog, 'usageBy'>
}

export interface WikiBooks {
  readonly database: Database
  readonly store: ObjectStore
}

/** Tasks, the messages that report changes of them to running processes, and the providers that have them. */
export interface TaskAdmin {
  readonly database: Database
  readonly messages: Pick<TaskMessages, 'announce' | 'announceWallets'>
  /** Rejects with the reason why the provider has not cancelled the task. */
  readonly cancelUpstream: (task: Task) => Promise<void>
}

export interface CheckedConfig {
  readonly file: string
  /** null when there is a problem. */
  readonly config: ConfigFile | null
  readonly problems: readonly Problem[]
  /** What is no mistake, and perhaps not meant. */
  readonly warnings: readonly Problem[]
}

export interface LoadOptions {
  /** Default: the file that the service uses, or would take. */
  readonly file?: string | undefined
  /** Default: all. */
  readonly parts?: ConfigParts
}

export interface ChannelHealth {
  readonly id: string
  readonly protocol: string
  readonly base_url: string
  readonly models: readonly string[]
  readonly priority: number
  readonly weight: number
  /** `off`: its `api_key` is empty. Else whether its host takes connections now. */
  readonly health: 'reachable' | 'unreachable' | 'off'
  /** Why it is unreachable. */
  readonly reason: string | null
}

export interface Wiring {
  /** Runs the service until it is asked to stop; returns its exit code. */
  serve(options: { readonly json: boolean }): Promise<number>
  /** Opens the running service's database, or the configured one, or starts one for as long as `work` takes. */
  withDatabase<T>(work: (database: Database) => Promise<T>): Promise<T>
  /** The running service's database, or the configured one. Starts nothing: null while there is neither. */
  withServiceDatabase<T>(work: (database: Database) => Promise<T>): Promise<T | null>
  /** The same as `withDatabase`, and the call log beside it. */
  withBooks<T>(work: (books: Books) => Promise<T>): Promise<T>
  /** The same, for the sums of the call log. */
  withUsage<T>(work: (books: UsageBooks) => Promise<T>): Promise<T>
  /** The same as `withDatabase`, and the service's object store beside it. */
  withLibrary<T>(work: (library: WikiBooks) => Promise<T>): Promise<T>
  /** The same as `withDatabase`; running processes are notified by NATS, where one is known. */
  withTasks<T>(work: (desk: TaskAdmin) => Promise<T>): Promise<T>
  /**
   * Replaces the master key. Returns how many keys were encrypted again; null where the database has the new master
   * key already.
   */
  rotateMasterKey(options: { readonly endLinks: boolean }): Promise<number | null>
  /** Rebuilds the call log, of the running service or of the configured engines. */
  rebuildLog(onProgress: (progress: RebuildProgress) => void): Promise<RebuildResult>
  /** @throws UnknownConfig where no file is named and the service's cannot be known */
  loadConfig(options?: LoadOptions): CheckedConfig
  channelHealth(): Promise<ChannelHealth[]>
  /** What each running process sees of its channels; null while no NATS is known or none answers. */
  processReports(): Promise<ProcessReport[] | null>
  /** What this machine's gateways have written down of a call; null where none knows it. */
  findInJournals(requestId: string): JournalTrace | null
  /** The answer to a question of yes or no; null without a terminal. */
  confirm(question: string): Promise<boolean | null>
  /** Work without an end: until Ctrl-C, or until the output is closed. */
  untilStopped(work: (stopped: AbortSignal) => Promise<void>): Promise<void>
}
