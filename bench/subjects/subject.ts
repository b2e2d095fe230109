import { processTree } from '../harness/proc.ts'
import type { Endpoint } from '../load/request.ts'
import type { Upstream } from '../upstream/start.ts'

/** What a subject finds when it is started. */
export interface Stage {
  upstream: Upstream
  /** The file that vouches for the upstream's TLS; null where TLS rows are skipped. */
  certFile: string | null
  /** A folder of the subject's own for this run, removed afterwards. */
  folder: string
  /** Where fetched programs are kept between runs. */
  cache: string
  /** The core to stay on; null where pinning cannot be had. */
  core: number | null
  /** The core of the load generator and the upstream. */
  enginesCore: number | null
  /** Connections that it must be able to hold at once, on both sides together. */
  openFiles: number
  /** More variables of its environment. */
  env?: Readonly<Record<string, string>>
}

/** Pids by what they do. `gateway` is what carries the calls; the rest stands behind it. */
export type Processes = { gateway: number[] } & Record<string, number[]>

/** How to see that calls have been paid for. */
export interface Settling {
  /** Calls on it are charged to an account of their own. */
  endpoint: Endpoint
  /** Small calls that the account has paid so far. */
  settledCalls(): Promise<number>
}

export interface RunningSubject {
  version: string
  plain: Endpoint
  /** The way on which the upstream is reached by TLS; null where there is none. */
  tls: Endpoint | null
  /** Ways on which the upstream speaks another protocol and the subject translates, by that protocol; absent elsewhere. */
  translated?: Readonly<Record<string, Endpoint>>
  processes(): Processes
  /** Brings what stands behind the gateway to the other core, or back; absent where nothing does. */
  moveEngines?(toOwnCore: boolean): void
  /** Null where nothing is settled. */
  settling: Settling | null
  stop(): Promise<void>
}

/** How many calls give a steady figure: a slow subject needs fewer. */
export interface Effort {
  warmUpCalls: number
  calls: number
  warmUpStreams: number
  burstStreams: number
}

export const FAST: Effort = { warmUpCalls: 20_000, calls: 30_000, warmUpStreams: 1_000, burstStreams: 2_000 }
export const SLOW: Effort = { warmUpCalls: 1_000, calls: 2_000, warmUpStreams: 100, burstStreams: 300 }

/** Something that carries calls to the bench upstream. Adding one is adding a file, and a line in index.ts. */
export interface Subject {
  name: string
  title: string
  effort: Effort
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
  modelSuffix: '',
})

/** The processes of a subject that is one program and what that starts. */
export const wholeTree = (pid: number) => (): Processes => ({ gateway: processTree(pid) })
