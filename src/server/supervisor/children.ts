/**
 * The service's own child processes, gateways and settler: forked, configured by message, restarted with back-off
 * after an exit, drained at the end.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Boot, CHILD_MARK, type ChildRole, type ToChild, type ToParent } from '../messages.ts'
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
 * Young objects of a gateway have their 16 MB from the beginning. V8 would begin with one, and where bodies of 100 KB pass it stays
 * small: calls still under way then count as old, and their bodies are freed only by marking, sixteen times a second.
 *
 * One thread helps the collector. V8 would take four, and with large bodies they take the event loop's core from it.
 */
const HEAP_FLAGS = [
  '--incremental-marking-soft-trigger=80',
  '--incremental-marking-hard-trigger=90',
  '--max-semi-space-size=16',
  '--v8-pool-size=1',
  '--expose-gc',
]
const GATEWAY_FLAGS = ['--min-semi-space-size=16']

interface ChildLog {
  debug(details: object, message: string): void
  info(details: object, message: string): void
  error(details: object, message: string): void
}

interface ChildOptions {
  readonly role: ChildRole
  /** Which of the processes with this role; 0 where there is one. */
  readonly index: number
  /** The lock of the data directory. The child inherits it: the directory stays locked while the child lives. */
  readonly lockFd?: number
  readonly log: ChildLog
  readonly onMessage: (child: ServiceChild, message: ToParent) => void
  /** Called at each start of the child. */
  readonly onReady: (child: ServiceChild) => void
}

/** How a process ended, in words. */
interface End {
  readonly why: string
  readonly message: string
}

export class ServiceChild {
  readonly name: string
  readonly #options: ChildOptions
  #boot: Omit<Boot, 'role' | 'index'> | null = null
  #process: ChildProcess | null = null
  /** The process has nothing to run yet. */
  #isLoading = false
  /** Resolves when the process has ended, or could not begin. */
  #end: Promise<End> = Promise.resolve({ why: '', message: '' })
  readonly #stop = new AbortController()
  #restarts = 0
  isReady = false

  constructor(options: ChildOptions) {
    this.#options = options
    this.name = `${options.role}-${options.index}`
  }

  get #isStopping(): boolean {
    return this.#stop.signal.aborted
  }

  get role(): ChildRole {
    return this.#options.role
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

  /** Begins a process, with the program that this one runs. It loads its code meanwhile, and waits for {@link start}. */
  load(): void {
    const { role, index, lockFd } = this.#options
    const child = fork(process.argv[1]!, [`${CHILD_MARK}${role}`, `--index=${index}`], {
      execArgv: [...process.execArgv, ...HEAP_FLAGS, ...(role === 'gateway' ? GATEWAY_FLAGS : [])],
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'inherit', 'ipc', lockFd ?? 'ignore'],
      // Ctrl-C reaches every process of the terminal; only the supervisor decides who ends when.
      detached: true,
    })
    this.#process = child
    this.#isLoading = true
    this.#end = new Promise((resolve) => {
      child.on('error', ({ message }) => {
        // An exit follows where there is a process.
        if (child.pid === undefined) resolve({ why: message, message: `could not be started: ${message}` })
      })
      child.once('exit', (code, signal) => {
        const why = signal ?? `exit code ${code}`
        resolve({ why, message: `ended before it was ready (${why})` })
      })
    })
  }

  /** Starts the child. Resolves when it is ready; rejects with the child's message when it cannot begin. */
  start(boot: Omit<Boot, 'role' | 'index'>): Promise<void> {
    if (this.#isStopping) return Promise.reject(new Error(`${this.name} is being stopped`))
    this.#boot = boot
    const { role, index, log } = this.#options
    if (!this.#isLoading) this.load()
    this.#isLoading = false
    const child = this.#process!
    const startedAt = performance.now()
    this.send({ type: 'boot', boot: { ...boot, role, index } })
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
      void this.#end.then(({ why, message }) => {
        clearTimeout(timer)
        reject(new Error(`${this.name} ${message}`))
        if (this.#process !== child) return
        const wasReady = this.isReady
        this.isReady = false
        if (child.pid === undefined) this.#process = null
        if (!this.#isStopping && wasReady) void this.#restart(startedAt, why)
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
        return await this.start(this.#boot!)
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
