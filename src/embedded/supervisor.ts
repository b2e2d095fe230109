import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { EngineEvent, EngineHealth, EngineKind, EngineState } from './engine.ts'
import { OutputTail } from './output-tail.ts'
import { freePort, isPortFree } from './ports.ts'
import { readPrivateJson, writePrivateFile } from './private-file.ts'
import { identify, type ProcessIdentity, sendSignal as send, waitForExit } from './process-identity.ts'

/** A start is tried again when the process ended before it answered: a predecessor may still hold the port. */
const START_ATTEMPTS = 6
const BACKOFF_FIRST_MS = 100
const BACKOFF_MAX_MS = 5_000
/** An engine that ran this long has recovered: its next crash is again a first one. */
const STABLE_AFTER_MS = 30_000
const KILL_BOUND_MS = 5_000

const Identity = z.object({ pid: z.int().positive(), start: z.string() })
/** `engines/<name>.json`: where the engine listens, and the process while there is one. */
export const EngineRecord = z.object({ port: z.int().positive(), process: Identity.nullable() })

interface Running {
  child: ChildProcess
  identity: ProcessIdentity
  tail: OutputTail
  since: number
  /** Resolves, never rejects, when the process has ended, with its exit status in words. */
  exited: Promise<string>
}

/** `prepare` failed: something is missing on this machine, and another attempt would fail as well. */
class StartError extends Error {}

/**
 * Keeps one engine running: starts it, restarts it on the same port when it crashes, ends the processes of a killed
 * run, and stops it. The pid and port are kept in `<dataDir>/engines/<name>.json`.
 */
export class SupervisedEngine {
  readonly kind: EngineKind
  readonly #recordPath: string
  readonly #lockFd: number | undefined
  readonly #onEvent: (event: EngineEvent) => void
  #state: EngineState = 'stopped'
  #running: Running | null = null
  #port: number | null = null
  #crashes = 0
  #backoffStep = 0
  #life = new AbortController()
  #work: Promise<void> = Promise.resolve()

  constructor(kind: EngineKind, dataDir: string, onEvent: (event: EngineEvent) => void, lockFd?: number) {
    const folder = join(dataDir, 'engines')
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    this.kind = kind
    this.#recordPath = join(folder, `${kind.name}.json`)
    this.#lockFd = lockFd
    this.#onEvent = onEvent
  }

  /** The address of the engine; the same as long as this service runs. */
  get url(): string {
    if (this.#port === null) throw new Error(`${this.kind.name} was never started`)
    return this.kind.url(this.#port)
  }

  readHealth(): EngineHealth {
    const pid = this.#running?.identity.pid ?? null
    return { state: this.#state, pid, port: this.#port, crashes: this.#crashes }
  }

  /** Starts the engine and waits until it answers. @throws Error saying which engine and why */
  start(): Promise<void> {
    if (this.#state !== 'stopped') throw new Error(`${this.kind.name} is ${this.#state} already`)
    this.#state = 'starting'
    this.#life = new AbortController()
    const starting = this.#start(this.#life.signal)
    this.#work = starting.catch(() => undefined)
    return starting
  }

  /** Ends the engine within the bounds of its kind, and whatever start or restart is under way. */
  async stop(): Promise<void> {
    if (this.#state === 'stopped') return
    this.#state = 'stopping'
    this.#life.abort(new Error(`${this.kind.name} is being stopped`))
    await this.#work
    const running = this.#running
    this.#running = null
    if (running !== null) {
      const detail = await this.#end(running)
      this.#emit({ event: 'stopped', pid: running.identity.pid, detail })
    }
    this.#recordStopped()
    this.#state = 'stopped'
  }

  /** Kills the process at once; the supervisor then does the same as after any crash. */
  kill(): void {
    if (this.#running !== null) send(this.#running.identity, 'SIGKILL')
  }

  /** Signals the engine while this process exits, when nothing can be awaited. */
  signalAtExit(): void {
    const first = this.kind.stopSignals[0]?.signal ?? 'SIGKILL'
    if (this.#running !== null) send(this.#running.identity, first)
  }

  async #start(signal: AbortSignal): Promise<void> {
    try {
      const record = readPrivateJson(this.#recordPath, EngineRecord)
      await this.#endStale(record?.process ?? null)
      const mayMove = this.#port === null
      let port = this.#port ?? record?.port ?? (await freePort())
      for (let attempt = 1; ; attempt++) {
        if (mayMove && !(await isPortFree(port))) port = await freePort()
        try {
          await this.#bringUp(port, signal)
          return
        } catch (error) {
          if (error instanceof StartError || signal.aborted || attempt === START_ATTEMPTS) throw error
          await sleep(backoffMs(attempt), undefined, { signal })
        }
      }
    } catch (error) {
      if (this.#state === 'starting') this.#state = 'stopped'
      throw new Error(`${this.kind.name} did not start: ${readMessage(error)}`, { cause: error })
    }
  }

  /** Makes one attempt: afterwards the process runs and answers, or has ended. */
  async #bringUp(port: number, signal: AbortSignal): Promise<void> {
    const launch = await this.kind.prepare(port).catch((error) => {
      throw new StartError(readMessage(error), { cause: error })
    })
    signal.throwIfAborted()
    const startedAt = performance.now()
    const running = await this.#spawn(launch.command, launch.env)
    try {
      this.#record(port, running.identity)
      this.#emit({ event: 'started', pid: running.identity.pid, port })
      await this.#untilAnswers(running, port, signal)
    } catch (error) {
      await this.#end(running)
      throw error
    }
    this.#port = port
    this.#running = running
    this.#state = 'ready'
    const startMs = Math.round(performance.now() - startedAt)
    this.#emit({ event: 'ready', pid: running.identity.pid, port, startMs })
    void running.exited.then((how) => this.#onCrash(running, how))
  }

  async #spawn(command: readonly string[], env: NodeJS.ProcessEnv): Promise<Running> {
    const [program = '', ...args] = command
    // A separate session, so that Ctrl-C in a terminal reaches only us and we stop the engines in order.
    const stdio: StdioOptions = ['pipe', 'pipe', 'pipe', this.#lockFd ?? 'ignore']
    const child = spawn(program, args, { env, detached: true, stdio })
    child.stdin?.on('error', () => {
      // the pipe only shows the child that we live; the end of a child is noticed by its exit
    })
    const exited = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(error.message))
      child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
    })
    if (child.pid === undefined) throw new StartError(`${program}: ${await exited}`)
    const identity = identify(child.pid) ?? { pid: child.pid, start: 'ended' }
    return { child, identity, tail: new OutputTail(child), since: performance.now(), exited }
  }

  async #untilAnswers(running: Running, port: number, signal: AbortSignal): Promise<void> {
    const bound = AbortSignal.timeout(this.kind.readyBoundMs)
    const settled = new AbortController()
    const given = AbortSignal.any([signal, bound, settled.signal])
    const gone = running.exited.then((how) => {
      throw new Error(`the process ended with ${how} before it answered\n${running.tail.text}`)
    })
    const aborted = new Promise<never>((_, reject) => {
      given.addEventListener('abort', () => {
        const late = bound.aborted
          ? `no answer within ${this.kind.readyBoundMs} ms`
          : readMessage(given.reason)
        reject(new Error(`${late}\n${running.tail.text}`))
      })
    })
    try {
      await Promise.race([this.kind.answers(running.child, port, given), gone, aborted])
    } finally {
      gone.catch(() => undefined)
      aborted.catch(() => undefined)
      settled.abort()
    }
  }

  #onCrash(running: Running, how: string): void {
    if (this.#running !== running) return
    this.#running = null
    this.#crashes += 1
    if (performance.now() - running.since > STABLE_AFTER_MS) this.#backoffStep = 0
    this.#state = 'restarting'
    this.#emit({ event: 'crashed', pid: running.identity.pid, detail: `${how}\n${running.tail.text}`.trim() })
    const signal = this.#life.signal
    this.#work = this.#restart(signal).catch(() => undefined)
  }

  async #restart(signal: AbortSignal): Promise<void> {
    for (;;) {
      this.#backoffStep += 1
      const attempt = this.#backoffStep
      const delayMs = backoffMs(attempt)
      this.#emit({ event: 'restarting', attempt, delayMs })
      await sleep(delayMs, undefined, { signal })
      try {
        if (this.#port !== null) await this.#bringUp(this.#port, signal)
        return
      } catch (error) {
        if (signal.aborted) return
        this.#emit({ event: 'restart-failed', attempt, detail: readMessage(error) })
      }
    }
  }

  async #end(running: Running): Promise<string> {
    const { identity, exited } = running
    for (const { signal, boundMs } of this.kind.stopSignals) {
      send(identity, signal)
      const how = await Promise.race([exited, sleep(boundMs, null, { ref: false })])
      if (how !== null) return how
    }
    send(identity, 'SIGKILL')
    return exited
  }

  /** Ends the process that a killed run may have left, by pid and start time, never by name. */
  async #endStale(identity: ProcessIdentity | null): Promise<void> {
    if (identity === null) return
    for (const { signal, boundMs } of this.kind.stopSignals) {
      if (!send(identity, signal)) return
      if (await waitForExit(identity, boundMs)) {
        this.#emit({ event: 'stale-ended', pid: identity.pid })
        return
      }
    }
    send(identity, 'SIGKILL')
    await waitForExit(identity, KILL_BOUND_MS)
    this.#emit({ event: 'stale-ended', pid: identity.pid })
  }

  #recordStopped(): void {
    try {
      if (this.#port !== null) this.#record(this.#port, null)
    } catch {
      // The disk is full. The record still names the process, which has ended: the next start sees that.
    }
  }

  #record(port: number, process: ProcessIdentity | null): void {
    writePrivateFile(this.#recordPath, `${JSON.stringify({ port, process })}\n`)
  }

  #emit(event: DistributiveOmit<EngineEvent, 'engine'>): void {
    this.#onEvent({ engine: this.kind.name, ...event })
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

function backoffMs(attempt: number): number {
  return Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** (attempt - 1))
}

function readMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
