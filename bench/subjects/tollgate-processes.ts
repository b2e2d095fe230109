import { commandLine, processTree } from '../harness/proc.ts'
import type { Processes } from './subject.ts'

/** The role of a process by its command line; the first match counts. */
const MARKS: readonly (readonly [role: string, mark: RegExp])[] = [
  ['gateway', /tollgate: gateway|--role=gateway/],
  ['settler', /tollgate: settler|--role=settler/],
  ['tasks', /tollgate: tasks|--role=tasks/],
  ['clickhouse', /clickhouse/],
  ['postgres', /postgres/],
  ['nats', /nats-server/],
]

export const readRole = (command: string): string =>
  MARKS.find(([, mark]) => mark.test(command))?.[0] ?? 'supervisor'

/** Returns the processes and engines of the service by role. */
export const tollgateProcesses = (supervisor: number): Processes => {
  const processes: Processes = {
    gateway: [],
    settler: [],
    tasks: [],
    postgres: [],
    nats: [],
    clickhouse: [],
    supervisor: [],
  }
  for (const pid of processTree(supervisor)) {
    const role = pid === supervisor ? 'supervisor' : readRole(commandLine(pid))
    processes[role]!.push(pid)
  }
  return processes
}
