import type { ChildProcess } from 'node:child_process'

/** The engines that can be started on the side, in the order in which they are stopped. */
export const ENGINE_NAMES = ['simulator', 'clickhouse', 'nats', 'postgres'] as const
export type EngineName = (typeof ENGINE_NAMES)[number]

/** A process to start: the first word is the program. */
export interface Launch {
  command: readonly string[]
  env: NodeJS.ProcessEnv
}

/** The supervisor's description of one kind of engine. */
export interface EngineKind {
  name: EngineName
  /**
   * Sent one after the other to end the process, each with its own bound; SIGKILL comes after the last. The kernel
   * also sends the first when the service dies.
   */
  stopSignals: ReadonlyArray<{ signal: NodeJS.Signals; boundMs: number }>
  /** The longest start until the engine answers, including a recovery after a crash. */
  readyBoundMs: number
  /**
   * Writes the files for a start and returns the command to run. Called before every start.
   * @throws Error with the missing part and the remedy: such a failure is not tried again
   */
  prepare(port: number): Promise<Launch>
  /** Ends when the started process answers on the port. May wait forever: the supervisor has the bound. */
  answers(child: ChildProcess, port: number, signal: AbortSignal): Promise<void>
  url(port: number): string
}

export type EngineState = 'starting' | 'ready' | 'restarting' | 'stopping' | 'stopped'

/** Something that happened to an engine, for the log. `detail` never holds a password. */
export type EngineEvent = { engine: EngineName } & (
  | { event: 'stale-ended'; pid: number }
  | { event: 'started'; pid: number; port: number }
  | { event: 'ready'; pid: number; port: number; startMs: number }
  | { event: 'crashed'; pid: number; detail: string }
  | { event: 'restarting'; attempt: number; delayMs: number }
  | { event: 'restart-failed'; attempt: number; detail: string }
  | { event: 'stopped'; pid: number; detail: string }
)

export interface EngineHealth {
  state: EngineState
  pid: number | null
  port: number | null
  /** Crashes since the service started it. */
  crashes: number
}
