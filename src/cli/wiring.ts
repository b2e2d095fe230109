/** Dependencies of the command line; `main.ts` makes them from the real engines. */

import type { RebuildProgress, RebuildResult } from '../../pipelines/call-log/rebuild.ts'
import type { ChannelServices } from '../../pipelines/management/channels/channels.ts'
import type { JournalServices } from '../../pipelines/management/jobs/journals.ts'
import type { TaskMessages } from '../../pipelines/tasks/worker/messages.ts'
import type { UnbookedSum } from '../../schemas/call-log/unbooked.ts'
import type { ProcessReport } from '../../schemas/config/channel-report.ts'
import type { ConfigFile } from '../../schemas/config/file.ts'
import type { CallLog } from '../clickhouse/call-log.ts'
import type { ConfigParts } from '../config/load.ts'
import type { Problem } from '../config/problem.ts'
import type { JournalTrace } from '../journal/find-call.ts'
import type { Provider } from '../payments/provider.ts'
import type { Database } from '../postgres/database.ts'
import type { Task } from '../postgres/tasks/types.ts'
import type { ObjectStore } from '../storage/store.ts'

interface Books {
  readonly database: Database
  readonly callLog: CallLog
}

export interface WikiBooks {
  readonly database: Database
  readonly store: ObjectStore
}

/** Tasks, the messages that report changes of them to running processes, and the providers that have them. */
export interface TaskAdmin {
  readonly database: Database
  readonly messages: Pick<TaskMessages, 'publish' | 'announce' | 'announceWallets'>
  /** Rejects with the reason why the provider has not cancelled the task. */
  readonly cancelUpstream: (task: Task) => Promise<unknown>
}

export interface CheckedConfig {
  readonly file: string
  /** null when there is a problem. */
  readonly config: ConfigFile | null
  readonly problems: readonly Problem[]
  /** Probable mistakes that do not prevent the use. */
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
  /** Null for a channel without a preset. */
  readonly provider: string | null
  readonly protocol: string
  readonly base_url: string
  readonly models: readonly string[]
  readonly priority: number
  readonly weight: number
  /** Ends of its keys, where it has several. */
  readonly keys: readonly string[]
  /** `off`: its `api_key` is empty. Else whether its host takes connections now. */
  readonly health: 'reachable' | 'unreachable' | 'off'
  /** Reason why it is unreachable. */
  readonly reason: string | null
}

export interface Wiring {
  /** Runs the service until a signal; returns its exit code. */
  serve(options: { readonly json: boolean }): Promise<number>
  /** Opens the running service's database, or the configured one, or starts one for as long as `work` takes. */
  withDatabase<T>(work: (database: Database) => Promise<T>): Promise<T>
  /**
   * Runs `work` on the running service's database, or the configured one. Starts nothing: returns null without either.
   */
  withServiceDatabase<T>(work: (database: Database) => Promise<T>): Promise<T | null>
  /** Runs `work` as `withDatabase` does, with the call log too. */
  withCallLog<T>(work: (books: Books) => Promise<T>): Promise<T>
  /** Runs `work` as `withDatabase` does, with the service's object store too. */
  withLibrary<T>(work: (library: WikiBooks) => Promise<T>): Promise<T>
  /** Runs `work` as `withDatabase` does; running processes are notified by NATS, where its address is known. */
  withTasks<T>(work: (desk: TaskAdmin) => Promise<T>): Promise<T>
  /** Runs `work` as `withDatabase` does, with the channels of the service's configuration. */
  withChannels<T>(work: (database: Database, channels: ChannelServices) => Promise<T>): Promise<T>
  /** Runs `work` as `withDatabase` does, with the disk of this machine, and NATS where its address is known. */
  withJournals<T>(work: (database: Database, journals: JournalServices) => Promise<T>): Promise<T>
  /**
   * Replaces the master key. Returns how many keys were encrypted again; null where the database has the new master
   * key already.
   */
  rotateMasterKey(options: { readonly endLinks: boolean }): Promise<number | null>
  /** Rebuilds the call log, of the running service or of the configured engines. */
  rebuildLog(
    onProgress: (progress: RebuildProgress) => void,
    confirmDeletion?: (unbooked: UnbookedSum) => Promise<void>,
  ): Promise<RebuildResult>
  /** @throws UnknownConfig where no file is named and the service's cannot be known */
  loadConfig(options?: LoadOptions): CheckedConfig
  channelHealth(): Promise<ChannelHealth[]>
  /** Returns the text of a file, or of a URL at a public address. */
  readList(source: string): Promise<string>
  /** Returns each running process's state of its channels; null without NATS or an answer. */
  processReports(): Promise<ProcessReport[] | null>
  /** Returns the records of a call in the journals of this machine's gateways; null without any. */
  findInJournals(requestId: string): JournalTrace | null
  /** Returns a function that opens the payment provider of the service; null where it has none. */
  openProvider(): Promise<(() => Promise<Provider>) | null>
  /** Returns the actor for the audit record: the user of this machine. */
  actor(): string
  /** Returns the base of the links that are handed out: the configured one, else the running service's. */
  publicUrl(): Promise<string>
  /** Returns the answer to a question of yes or no; null without a terminal. */
  confirm(question: string): Promise<boolean | null>
  /** Runs `work` until Ctrl-C, or until the output is closed. */
  untilStopped(work: (stopped: AbortSignal) => Promise<void>): Promise<void>
}
