/** Messages between the supervising process and its children over Node's IPC channel. */
import type { LogLevel, ObjectStoreSettings, Settings } from '../../schemas/config/settings.ts'
import type { PaymentSettings } from '../../schemas/payments/provider.ts'

/** One process has both roles where one gateway process is enough. */
export type BackgroundRole = 'settler' | 'tasks' | 'settler+tasks'
export type ChildRole = 'gateway' | BackgroundRole

/** The mark on a child's command line. The role follows, for process lists. */
export const CHILD_MARK = '--role='

/** Everything a child needs to begin. Holds secrets: it goes over IPC, never onto a command line. */
export interface Boot {
  readonly role: ChildRole
  /** Which of the gateway processes; 0 where there is one. */
  readonly index: number
  /** Indexes in use; journals of others are taken over by process 0. */
  readonly gatewayCount: number
  readonly host: string
  readonly port: number
  readonly admin: Settings['admin']
  readonly tls: Settings['tls']
  /** Base of the links handed out, without a slash at its end. */
  readonly publicUrl: string
  readonly console: Settings['console']
  readonly dataDir: string
  readonly configPath: string
  readonly databaseUrl: string
  /** A pooler in transaction mode; null: `databaseUrl` takes everything. */
  readonly databasePoolUrl: string | null
  /** A standby for lists and logs; null: the primary has them. */
  readonly databaseReadUrl: string | null
  readonly natsUrl: string
  /** Replicas of streams; null: as the cluster allows. */
  readonly natsReplicas: number | null
  readonly clickhouseUrl: string
  /** The cluster whose servers all have the call log; null: one server has it. */
  readonly clickhouseCluster: string | null
  readonly simulatorUrl: string | null
  /** Null: a folder of the data directory. */
  readonly objectStore: ObjectStoreSettings | null
  /** Null: no mail is sent. */
  readonly mail: Settings['mail']
  /** Null: the service takes no cards. */
  readonly payments: PaymentSettings | null
  /** The simulated provider takes the cards. */
  readonly hasSimulatedCards: boolean
  /** Base64. */
  readonly masterKey: string
  readonly logLevel: LogLevel
}

/** Returns the parts that must never be in a log line, in each form in which they may be written. */
export const listBootSecrets = ({ masterKey, objectStore, mail, payments }: Boot): string[] => [
  masterKey,
  Buffer.from(masterKey, 'base64').toString('hex'),
  ...(objectStore === null ? [] : [objectStore.secretAccessKey]),
  ...(mail === null ? [] : [mail.url]),
  ...(payments === null ? [] : [payments.secretKey, ...payments.webhookSecrets]),
]

export type ToChild =
  | { readonly type: 'boot'; readonly boot: Boot }
  /** No new calls; those that run may end, until `deadlineMs` have passed. */
  | { readonly type: 'drain'; readonly deadlineMs: number }
  | { readonly type: 'snapshot'; readonly id: number }
  | { readonly type: 'metrics'; readonly id: number; readonly text: string }
  | { readonly type: 'engines'; readonly engines: Readonly<Record<string, string>> }

export type ToParent =
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly message: string }
  /** Answer to `snapshot`, or the last one before the child ends: its metrics as plain data. */
  | { readonly type: 'snapshot'; readonly id: number; readonly snapshot: unknown }
  /** A scrape reached this child: the whole service's metrics are wanted. */
  | { readonly type: 'metrics'; readonly id: number }
