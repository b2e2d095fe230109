/** The service's own processes, by what they do. */
import { readdirSync, readFileSync } from 'node:fs'

export type Role = 'gateway' | 'settler' | 'tasks'

/** The pids of the children of a supervisor that have this role. */
export function childrenOf(supervisor: number, role: Role): number[] {
  return readText(`/proc/${supervisor}/task/${supervisor}/children`)
    .split(' ')
    .filter((pid) => pid !== '')
    .map(Number)
    .filter((pid) => readRoles(pid).includes(role))
}

/** A child overwrites its command line with its name once it has started. It may have two roles. */
function readRoles(pid: number): string[] {
  const line = readText(`/proc/${pid}/cmdline`)
  return /(?:--role=|tollgate: )([\w+]+)/.exec(line)?.[1]?.split('+') ?? []
}

/** A zombie has ended, once the last of its threads has: until then its files and sockets are open. */
export function isRunning(pid: number): boolean {
  const stat = readText(`/proc/${pid}/stat`)
  if (stat === '') return false
  return !/\) [ZX] /.test(stat) || threadsOf(pid) > 1
}

function threadsOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).length
  } catch {
    return 0
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
