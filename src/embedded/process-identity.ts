import { readFileSync } from 'node:fs'

/**
 * A process that cannot be confused with a later one that was given the same pid.
 * `start` is the machine's boot id and the process's start time in clock ticks since that boot,
 * field 22 of /proc/<pid>/stat (proc_pid_stat(5)).
 */
export interface ProcessIdentity {
  pid: number
  start: string
}

/** Returns the identity of the process that has this pid now; null when none has. A zombie counts as none. */
export function identify(pid: number): ProcessIdentity | null {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return null
  }
  // The second field is the program's name in parentheses and may itself hold spaces and parentheses.
  const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const startTicks = rest[18]
  if (state === 'Z' || state === 'X' || startTicks === undefined) return null
  return { pid, start: `${bootId()}.${startTicks}` }
}

/** Returns whether this very process still runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.start === identity.start
}

/** Sends a signal to this very process; returns false when it has ended or its pid belongs to another by now. */
export function sendSignal(identity: ProcessIdentity, name: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false
  try {
    process.kill(identity.pid, name)
    return true
  } catch {
    return false
  }
}

const POLL_INTERVAL_MS = 20

/** Waits until this very process has ended; returns false when it still runs after the bound. */
export async function waitForExit(identity: ProcessIdentity, boundMs: number): Promise<boolean> {
  const deadline = performance.now() + boundMs
  while (isAlive(identity)) {
    if (performance.now() >= deadline) return false
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS))
  }
  return true
}

let boot: string | undefined

function bootId(): string {
  boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
  return boot
}
