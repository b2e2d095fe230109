import { processTree } from '../harness/proc.ts'
import type { Endpoint } from '../load/request.ts'
import type { Upstream } from '../upstream/start.ts'

/** What a subject gets at its start. */
export interface Stage {
  upstream: Upstream
  /** The CA file of the upstream; null where the bench skips TLS rows. */
  certFile: string | null
  /** The subject's folder for this run, removed afterwards. */
  folder: string
  /** The cache folder of downloaded programs. */
  cache: string
  /** The core to run on; null without pinning. */
  core: number | null
  /** The core of engines that must not share the gateway's; null without pinning. */
  enginesCore: number | null
  /** Connections that it must be able to hold at once, on both sides together. */
  openFiles: number
  /** More variables of its environment. */
  env?: Readonly<Record<string, string>>
}

/** Pids by role. `gateway` carries the calls. */
export type Processes = { gateway: number[] } & Record<string, number[]>

/** Shows which calls are settled. */
export interface Settling {
  /** Calls on it are charged to a separate account. */
  endpoint: Endpoint
  /** Several keys, each with its own account: one key may read the call log only so often. */
  readers: readonly Endpoint[]
  /** Small calls that the account has paid so far. */
  settledCalls(): Promise<number>
}

/** Upstream protocols that a gateway translates to. */
export const TRANSLATED = ['messages', 'generate-content'] as const

export interface RunningSubject {
  version: string
  /** From its start until it took calls, in milliseconds; null where that is not known. */
  readyMs?: number | null
  /** What its installation takes on disk; null where that is not known. */
  installedBytes?: number | null
  /** Settings to tell the reader of. */
  settings?: readonly string[]
  plain: Endpoint
  /** The endpoint that uses TLS to the upstream; null where there is none. */
  tls: Endpoint | null
  /** Endpoints whose upstream has another protocol, which the subject translates, by protocol. */
  translated?: Readonly<Record<string, Endpoint>>
  processes(): Processes
  /** Moves the engines to their core, or back to the gateway's. Absent for a subject without engines. */
  moveEngines?(toOwnCore: boolean): void
  /** Stops what works behind the gateway until the returned function is called. Absent for a subject without engines. */
  stopEngines?(): () => void
  /** Null for a subject without settlement. */
  settling: Settling | null
  stop(): Promise<void>
}

/** How programs are warmed up that compile what runs often. A slow one gets fewer calls: see `warmUp`. */
export const WARM_UP = { calls: 20_000, streams: 1_000 }

/** A program that carries calls to the bench upstream. A new one needs a file, and a line in index.ts. */
export interface Subject {
  name: string
  title: string
  /** What it does with a call besides passing it on. */
  work: string
  /** False for one that would need minutes to hold thousands of streams. */
  holdsManyStreams: boolean
  /** Throws `Unavailable` when it cannot take part on this machine. */
  start(stage: Stage): Promise<RunningSubject>
}

export const COMPLETIONS_PATH = '/v1/chat/completions'

export const plainEndpoint = (port: number): Endpoint => ({
  port,
  path: COMPLETIONS_PATH,
  headers: {},
  model: 'bench',
})

/** Returns the processes of a subject that is one program and its children. */
export const wholeTree = (pid: number) => (): Processes => ({ gateway: processTree(pid) })
