import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { findProgram } from '../../src/embedded/programs.ts'
import { allowedCores, processTree } from './proc.ts'

/**
 * Processes of a bench, pinned to a core. None outlives the bench.
 *
 * `setpriv --pdeathsig` ends a child even when SIGKILL ends the bench. {@link endAll} also ends the descendants of a
 * child.
 */

const STOP_GRACE_MS = 15_000
const OUTPUT_TAIL_CHARACTERS = 4_000

export interface Cores {
  /** The core of the subject under test. */
  subject: number
  /** The core of the load generator, the upstream and the bench itself. */
  load: number
  /** The core of a gateway's engines where the gateway has a core to itself: the load's on a machine of two. */
  engines: number
}

/** Returns the cores to use, or null where pinning is not possible (one core, or no `taskset`). */
export const chooseCores = (): Cores | null => {
  const [load, subject, engines] = allowedCores()
  if (load === undefined || subject === undefined || !findProgram('taskset')) return null
  return { subject, load, engines: engines ?? load }
}

const PIN_TRIES = 5

/** Pins all threads of a running process. Retries where a thread ends meanwhile, which makes `taskset` fail. */
export const pin = (pid: number, cores: number | readonly number[]): void => {
  for (let left = PIN_TRIES - 1; ; left--) {
    try {
      execFileSync('taskset', ['-a', '-c', '-p', String(cores), String(pid)], { stdio: 'ignore' })
      return
    } catch (error) {
      if (!existsSync(`/proc/${pid}`)) return
      if (left === 0) throw error
    }
  }
}

interface ChildOptions {
  /** The core to run on; null lets the kernel choose. */
  core: number | null
  env?: Record<string, string>
  cwd?: string
  /** Opens a channel of messages to a Node.js child. */
  messages?: boolean
}

export interface Child {
  name: string
  pid: number
  process: ChildProcess
  /** Returns the end of its output on stdout and stderr. */
  lastOutput(): string
  ended(): boolean
  /** SIGTERM, and SIGKILL for it and all its descendants when it takes too long. */
  stop(): Promise<void>
}

const children = new Set<Child>()

const wrap = (core: number | null, command: string, args: string[]): [string, string[]] => {
  const words = core === null ? [command, ...args] : ['taskset', '-c', String(core), command, ...args]
  if (findProgram('setpriv')) words.unshift('setpriv', '--pdeathsig', 'TERM', '--')
  return [words[0]!, words.slice(1)]
}

/** Sends a signal to a process, if it is still there. */
export const sendSignal = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal)
  } catch {
    // It has already ended.
  }
}

const stopChild = (child: Child, exited: Promise<void>): Promise<void> => {
  if (child.ended()) return exited
  const tree = processTree(child.pid)
  const killTimer = setTimeout(() => {
    for (const pid of processTree(child.pid)) sendSignal(pid, 'SIGKILL')
  }, STOP_GRACE_MS)
  sendSignal(child.pid, 'SIGTERM')
  return exited.then(() => {
    clearTimeout(killTimer)
    // Descendants that the child left. Linux does not reuse their pids within this time.
    for (const pid of tree) sendSignal(pid, 'SIGKILL')
  })
}

/** Starts a program. Rejects when the system cannot start it. */
export const startChild = (
  name: string,
  command: string,
  args: string[],
  options: ChildOptions,
): Promise<Child> =>
  new Promise((resolve, reject) => {
    const [file, words] = wrap(options.core, command, args)
    const started = spawn(file, words, {
      env: { ...process.env, ...options.env },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      stdio: options.messages ? ['ignore', 'pipe', 'pipe', 'ipc'] : ['ignore', 'pipe', 'pipe'],
    })
    let lastOutput = ''
    const keep = (piece: Buffer): void => {
      lastOutput = (lastOutput + piece.toString()).slice(-OUTPUT_TAIL_CHARACTERS)
    }
    started.stdout!.on('data', keep)
    started.stderr!.on('data', keep)
    const exited = new Promise<void>((gone) => started.once('exit', () => gone()))
    started.once('error', reject)
    started.once('spawn', () => {
      const child: Child = {
        name,
        pid: started.pid!,
        process: started,
        lastOutput: () => lastOutput.trim(),
        ended: () => started.exitCode !== null || started.signalCode !== null,
        stop: () => stopChild(child, exited),
      }
      children.add(child)
      void exited.then(() => children.delete(child))
      resolve(child)
    })
  })

/** Ends every started process, the last one first. */
export const endAll = async (): Promise<void> => {
  for (const child of [...children].reverse()) await child.stop()
}

/** Kills all children without waiting, for a process that is about to exit. */
export const killAll = (): void => {
  for (const child of children) for (const pid of processTree(child.pid)) sendSignal(pid, 'SIGKILL')
}
