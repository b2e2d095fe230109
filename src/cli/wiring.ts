/** What commands use of this machine and of the engines; `main.ts` makes it of the real ones. */
import type { RebuildProgress, RebuildResult } from '../../pipelines/call-log/rebuild.ts'
import type { TaskMessages } from '../../pipelines/tasks/worker/messages.ts'
import type { UnbookedSum } from '../../schemas/call-log/unbooked.ts'
import type { ChannelEntry } from '../../schemas/config/catalog.ts'
import type { ProcessReport } from '../../schemas/config/channel-report.ts'
import type { ConfigFile } from '../../schemas/config/file.ts'
import type { Settings } from '../../schemas/config/settings.ts'
import type { CallLog } from '../clickhouse/call-log.ts'
import type { ConfigParts } from '../config/load.ts'
import type { Problem } from '../config/problem.ts'
import type { Nats } from '../nats/nats.ts'
import type { Provider } from '../payments/provider.ts'
import type { Database } from '../postgres/database.ts'
import type { Task } from '../postgres/tasks/types.ts'
import type { ObjectStore } from '../storage/store.ts'
import type { CommandCalls } from './upstream-calls.ts'

export interface LoadedConfig {
  readonly file: string
  /** null when there is a problem. */
  readonly config: ConfigFile | null
  readonly problems: readonly Problem[]
  /** Probable mistakes that do not prevent the use. */
  readonly warnings: readonly Problem[]
}

interface LoadOptions {
  /** Default: the file that the service uses, or would use. */
  readonly file?: string | undefined
  /** Default: all. */
  readonly parts?: ConfigParts
}

interface TaskLinks {
  readonly messages: Pick<TaskMessages, 'publish' | 'announce' | 'announceWallets'>
  /** Rejects with the reason why the provider has not cancelled the task. */
  readonly cancelUpstream: (task: Task) => Promise<unknown>
}

export interface Wiring {
  /** The environment of the command. */
  readonly env: NodeJS.ProcessEnv
  /** Runs the service until a signal; returns its exit code. */
  serve(options: { readonly json: boolean }): Promise<number>
  settings(): Settings
  /** Opens the running service's database, or the configured one; without either starts one until `close`. */
  database(): Promise<Database>
  /** Opens the call log in the same way, with its database. */
  books(): Promise<{ readonly database: Database; readonly callLog: CallLog }>
  /** Opens the service's object store. */
  store(): Promise<ObjectStore>
  /** Connects to the running service's NATS, or the configured one; null where its address is not known. */
  nats(): Promise<Nats | null>
  /** Opens calls to upstreams. */
  upstreams(): Promise<CommandCalls>
  /** Opens what tells running processes of changes of tasks, and providers of cancels. */
  tasks(): Promise<TaskLinks>
  /** Closes whatever is open. */
  close(): Promise<void>
  /** Runs `work` on the running service's database, or the configured one. Returns null without either. */
  withServiceDatabase<T>(work: (database: Database) => Promise<T>): Promise<T | null>
  /** Rebuilds the call log, of the running service or of the configured engines. */
  rebuildLog(
    onProgress: (progress: RebuildProgress) => void,
    confirmDeletion?: (unbooked: UnbookedSum) => Promise<void>,
  ): Promise<RebuildResult>
  /** @throws UnknownConfig where no file is named and the service's cannot be known */
  loadConfig(options?: LoadOptions): LoadedConfig
  /** Returns the configured channels; starts the simulated provider where they lead to it and none runs. */
  channels(): Promise<readonly ChannelEntry[]>
  /** Returns each running process's state of its channels; null without NATS or an answer. */
  processReports(): Promise<ProcessReport[] | null>
  /** Returns a function that opens the payment provider of the service; null where it has none. */
  openProvider(): Promise<(() => Promise<Provider>) | null>
  /** Returns the actor for the audit record: the user of this machine. */
  actor(): string
  /** Returns the base of the links that are handed out: the configured one, else the running service's. */
  publicUrl(): string
  /** Returns the answer to a question; null without a terminal. */
  ask(question: string): Promise<string | null>
  /** Runs `work` until Ctrl-C, or until the output is closed. */
  untilStopped(work: (stopped: AbortSignal) => Promise<void>): Promise<void>
}
