import { readdirSync, readFileSync } from 'node:fs'

/**
 * CPU time and memory of processes, as Linux tells them in /proc.
 *
 * `schedstat` of every thread counts nanoseconds but forgets threads that ended; `stat` counts ticks of 10 ms
 * and forgets nobody. The larger of the two is used, so that a figure is exact where it can be and never too
 * small by more than a tick. Children that were waited for stand in their parent's `stat`.
 */

/** USER_HZ: fixed at 100 on every Linux that Node.js runs on. */
const TICK_NS = 10_000_000

export interface ProcessStat {
  ppid: number
  /** utime + stime, in nanoseconds. */
  ownNs: number
  /** cutime + cstime: children that ended and were waited for, in nanoseconds. */
  waitedNs: number
}

/** One line of /proc/PID/stat (proc_pid_stat(5)). The name in brackets may itself hold brackets and blanks. */
export const parseStat = (line: string): ProcessStat => {
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  const ticks = (index: number): number => Number(fields[index])
  return {
    ppid: ticks(1),
    ownNs: (ticks(11) + ticks(12)) * TICK_NS,
    waitedNs: (ticks(13) + ticks(14)) * TICK_NS,
  }
}

/** The first field of /proc/PID/task/TID/schedstat: nanoseconds on a CPU. */
export const parseSchedstat = (text: string): number => Number(text.slice(0, text.indexOf(' ')))

/** `VmRSS` of /proc/PID/status in bytes; 0 for a process without memory of its own. */
export const parseResidentBytes = (status: string): number => {
  const found = /^VmRSS:\s+(\d+) kB$/m.exec(status)
  return found ? Number(found[1]) * 1024 : 0
}

export interface CoreTimes {
  busyTicks: number
  allTicks: number
}

/** The first line of /proc/stat (proc_stat(5)): all cores together; idle and waiting for disks is not busy. */
export const parseCoreTimes = (stat: string): CoreTimes => {
  const [user, nice, system, idle, iowait, irq, softirq, steal] = stat
    .split('\n')[0]!
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number)
  const busyTicks = user! + nice! + system! + irq! + softirq! + steal!
  return { busyTicks, allTicks: busyTicks + idle! + iowait! }
}

/** The cores of a list such as `0-3,8`. */
export const parseCpuList = (list: string): number[] =>
  list
    .trim()
    .split(',')
    .flatMap((part) => {
      const [first, last] = part.split('-').map(Number)
      return Array.from({ length: (last ?? first!) - first! + 1 }, (_, i) => first! + i)
    })

/** A process or thread may end between being listed and being read. */
const unlessGone = <T>(read: () => T, gone: T): T => {
  try {
    return read()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return gone
    throw error
  }
}

const schedstatNs = (pid: number): number => {
  let sum = 0
  for (const tid of unlessGone(() => readdirSync(`/proc/${pid}/task`), []))
    sum += unlessGone(() => parseSchedstat(readFileSync(`/proc/${pid}/task/${tid}/schedstat`, 'latin1')), 0)
  return sum
}

/** CPU time that the processes have used since they started, in nanoseconds; those that ended count nothing. */
export const cpuNs = (pids: readonly number[]): number => {
  let sum = 0
  for (const pid of pids) {
    const stat = unlessGone(() => parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1')), null)
    if (stat) sum += Math.max(schedstatNs(pid), stat.ownNs) + stat.waitedNs
  }
  return sum
}

/** Resident memory of the processes, in bytes. */
export const residentBytes = (pids: readonly number[]): number =>
  pids.reduce(
    (sum, pid) =>
      sum + unlessGone(() => parseResidentBytes(readFileSync(`/proc/${pid}/status`, 'latin1')), 0),
    0,
  )

/** The process and all that descend from it, itself first. */
export const processTree = (root: number): number[] => {
  const children = new Map<number, number[]>()
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry)
    if (!Number.isInteger(pid)) continue
    const stat = unlessGone(() => parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1')), null)
    if (stat) children.set(stat.ppid, [...(children.get(stat.ppid) ?? []), pid])
  }
  const tree = [root]
  for (let i = 0; i < tree.length; i++) tree.push(...(children.get(tree[i]!) ?? []))
  return tree
}

/** The command line of a process, its words joined by blanks; empty when it has ended. */
export const commandLine = (pid: number): string =>
  unlessGone(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'), '')
    .replaceAll('\0', ' ')
    .trim()

/** The cores that a process may use, this one where none is given. */
export const allowedCores = (pid: number = process.pid): number[] =>
  parseCpuList(/^Cpus_allowed_list:\s+(.+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1]!)

/** The limit of open files of this process: what its children inherit. */
export const openFilesLimit = (): number => {
  const limits = readFileSync('/proc/self/limits', 'latin1')
  const soft = /^Max open files\s+(\S+)/m.exec(limits)![1]!
  return soft === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(soft)
}

/** How busy the whole machine is while `wait` lasts, in percent. */
export const busyPercentDuring = async (wait: Promise<unknown>): Promise<number> => {
  const before = parseCoreTimes(readFileSync('/proc/stat', 'latin1'))
  await wait
  const after = parseCoreTimes(readFileSync('/proc/stat', 'latin1'))
  return (100 * (after.busyTicks - before.busyTicks)) / Math.max(1, after.allTicks - before.allTicks)
}
