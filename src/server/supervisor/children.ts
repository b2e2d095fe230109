/**
 * The service's own child processes, gateways and settler: forked, configured by message, restarted with back-off
 * after an exit, drained at the end.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Boot, CHILD_MARK, type ToChild, type ToParent } from '../messages.ts'
import { KILL_AFTER_MS } from './stop-bounds.ts'

const FIRST_RESTART_DELAY_MS = 100
const MAX_RESTART_DELAY_MS = 10_000
/** A child that has run this long has recovered: its next restart waits as if it were the first. */
const SETTLED_AFTER_MS = 30_000
const READY_BOUND_MS = 30_000
/**
 * Fill levels of the heap at which old objects are marked, in percent of its possible growth: in the background, and at
 * once. V8 itself begins when less room is left than young objects take, 16 MB. With a heap as small as these that is
 * always, and under load one marking follows another: they took two fifths of a gateway's time.
 *
 * Young objects have their 16 MB from the beginning. V8 would begin with one, and where bodies of 100 KB pass it stays
 * small: calls still under way then count as old, and their bodies are freed only by marking, sixteen times a second.
 *
 * One thread helps the collector. V8 would take four, and with large bodies they take the event loop's core from it.
 */
const HEAP_FLAGS = [
  '--incremental-marking-soft-trigger=80',
  '--incremental-marking-hard-trigger=90',
  '--min-semi-space-size=16',
  '--v8-pool-size=1',
]

interface ChildLog {
  debug(details: object, message: string): void
  info(details: object, message: string): void
  error(details: object, message: string): void
}

interface ChildOptions {
  readonly boot: Boot
  /** The lock of the data directory. The child inherits it: the directory stays locked while the child lives. */
  readonly lockFd?: number
  readonly log: ChildLog
  readonly onMessage: (child: ServiceChild, message: ToParent) => void
  /** Called at each start of the child. */
  readonly onReady: (child: ServiceChild) => void
}

export class ServiceChild {
  readonly name: string
  readonly #options: ChildOptions
  #process: ChildProcess | null = null
  readonly #stop = new AbortController()
  #restarts = 0
  isReady = false

  constructor(options: ChildOptions) {
    this.#options = options
    const { role, index } = options.boot
    this.name = `${role}-${index}`
  }

  get #isStopping(): boolean {
    return this.#stop.signal.aborted
  }

  get pid(): number | null {
    return this.#process?.pid ?? null
  }

  get restarts(): number {
    return this.#restarts
  }

  send(message: ToChild): void {
    if (this.#process?.connected) this.#process.send(message)
  }

  /**
   * Starts the child, with the program that this process runs. Resolves when the child is ready; rejects with the
   * child's message when it cannot begin.
   */
  start(): Promise<void> {
    if (this.#isStopping) return Promise.reject(new Error(`${this.name} is being stopped`))
    const { boot, lockFd, log } = this.#options
    const child = fork(process.argv[1]!, [`${CHILD_MARK}${boot.role}`, `--index=${boot.index}`], {
      execArgv: [...process.execArgv, ...HEAP_FLAGS],
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'inherit', 'ipc', lockFd ?? 'ignore'],
      // Ctrl-C reaches every process of the terminal; only the supervisor decides who ends when.
      detached: true,
    })
    this.#process = child
    const startedAt = performance.now()
    const hasBegun = child.pid !== undefined
    if (hasBegun) child.send({ type: 'boot', boot } satisfies ToChild)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        // Another one takes its place: it must no longer become ready.
        child.removeAllListeners('message')
        child.kill('SIGKILL')
        reject(new Error(`${this.name} did not start within 30 s`))
      }, READY_BOUND_MS)
      child.on('message', (message: ToParent) => {
        if (message.type === 'ready') {
          clearTimeout(timer)
          this.isReady = true
          log[this.#restarts === 0 ? 'debug' : 'info'](
            { child: this.name, pid: child.pid },
            'Process is ready',
          )
          this.#options.onReady(this)
          resolve()
        } else if (message.type === 'failed') {
          clearTimeout(timer)
          reject(new Error(message.message))
        } else this.#options.onMessage(this, message)
      })
      child.on('error', (error) => {
        // An exit follows where there is a process.
        if (hasBegun) return
        clearTimeout(timer)
        this.#process = null
        reject(new Error(`${this.name} could not be started: ${error.message}`))
      })
      child.once('exit', (code, signal) => {
        clearTimeout(timer)
        const wasReady = this.isReady
        this.isReady = false
        reject(new Error(`${this.name} ended before it was ready (${signal ?? `exit code ${code}`})`))
        if (!this.#isStopping && wasReady) void this.#restart(startedAt, signal ?? `exit code ${code}`)
      })
    })
  }

  async #restart(startedAt: number, why: string): Promise<void> {
    if (performance.now() - startedAt > SETTLED_AFTER_MS) this.#restarts = 0
    while (!this.#isStopping) {
      const delay = Math.min(MAX_RESTART_DELAY_MS, FIRST_RESTART_DELAY_MS * 2 ** this.#restarts)
      this.#restarts++
      this.#options.log.error({ child: this.name, why, delay_ms: delay }, 'Process died; restarting it')
      await sleep(delay, undefined, { signal: this.#stop.signal }).catch(() => {})
      if (this.#isStopping) return
      try {
        return await this.start()
      } catch (error) {
        this.#process?.kill('SIGKILL')
        why = (error as Error).message
      }
    }
  }

  /** Asks the child to end, and kills it at the deadline; kills at once one that does not serve yet. */
  async drain(deadlineMs: number): Promise<void> {
    this.#stop.abort()
    const child = this.#process
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    if (this.isReady) this.send({ type: 'drain', deadlineMs })
    else child.kill('SIGKILL')
    const timer = setTimeout(() => child.kill('SIGKILL'), deadlineMs + KILL_AFTER_MS)
    await gone
    clearTimeout(timer)
  }
}
