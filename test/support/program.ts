/** A program of a test that can be killed, paused and started again. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { endWithUs, plainEnvironment } from '../../src/embedded/programs.ts'
import { descendantsOf, signalQuietly } from './descendants.ts'
import { eventually } from './eventually.ts'

const ANSWER_BOUND_MS = 2_000

export interface ProgramOptions {
  readonly name: string
  readonly command: readonly string[]
  /** Before the command, such as a change of user. */
  readonly prefix?: readonly string[]
  /** Default: what engines get. */
  readonly env?: NodeJS.ProcessEnv
  /** Where both streams of its output are appended to. */
  readonly outputPath: string
  /** Listens there once it is ready. */
  readonly host: string
  readonly port: number
}

/** Ends with the process that started it. */
export class Program {
  readonly name: string
  readonly #options: ProgramOptions
  #child: ChildProcess | null = null

  constructor(options: ProgramOptions) {
    this.name = options.name
    this.#options = options
  }

  get isRunning(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null
  }

  get pids(): number[] {
    return this.isRunning ? [this.#child!.pid!, ...descendantsOf(this.#child!.pid!)] : []
  }

  /** Starts it until it listens: a start beside what is left of a killed one may fail. */
  async start(): Promise<void> {
    const { name, host, port, outputPath } = this.#options
    const isReady = async () => {
      if (!this.isRunning) this.#spawn()
      return (await listens(host, port)) ? true : undefined
    }
    await eventually(`${name} listens`, isReady).catch((error: Error) => {
      throw new Error(`${error.message}: ${readFileSync(outputPath, 'utf8')}`)
    })
  }

  #spawn(): void {
    const { prefix = [], command, env = plainEnvironment(), outputPath } = this.#options
    const output = openSync(outputPath, 'a', 0o600)
    const [program = '', ...args] = [...prefix, ...endWithUs('SIGKILL'), ...command]
    const child = spawn(program, args, { env, stdio: ['ignore', output, output] })
    child.on('error', () => {
      // It has not started, which the wait for its port shows.
    })
    closeSync(output)
    this.#child = child
  }

  /** SIGKILL to it and all below it. Resolves when it has ended. */
  async kill(): Promise<void> {
    if (!this.isRunning) return
    const child = this.#child!
    const gone = once(child, 'exit')
    for (const pid of this.pids) signalQuietly(pid, 'SIGKILL')
    await gone
  }

  pause(): void {
    for (const pid of this.pids) signalQuietly(pid, 'SIGSTOP')
  }

  resume(): void {
    for (const pid of this.pids) signalQuietly(pid, 'SIGCONT')
  }
}

function listens(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    const over = (isThere: boolean) => {
      socket.destroy()
      resolve(isThere)
    }
    socket.setTimeout(ANSWER_BOUND_MS, () => over(false))
    socket.on('connect', () => over(true))
    socket.on('error', () => over(false))
  })
}
