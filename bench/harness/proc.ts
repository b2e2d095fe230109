import { readdirSync, readFileSync } from 'node:fs'

/**
 * CPU time and memory of processes, from /proc.
 *
 * `schedstat` of every thread counts nanoseconds but loses threads that ended; `stat` counts ticks of 10 ms and loses
 * none. The larger of the two counts, so a figure is at most one tick too small. The parent's `stat` includes children
 * that it waited for.
 */

/** USER_HZ: fixed at 100 on every Linux that Node.js runs on. */
const TICK_NS = 10_000_000

interface ProcessStat {
  ppid: number
  /** utime + stime, in nanoseconds. */
  ownNs: number
  /** cutime + cstime: children that ended and were waited for, in nanoseconds. */
  waitedNs: number
}

/** Parses /proc/PID/stat (proc_pid_stat(5)). The name in parentheses may contain parentheses and spaces. */
export const parseStat = (line: string): ProcessStat => {
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  const ticks = (index: number): number => Number(fields[index])
  return {
    ppid: ticks(1),
    ownNs: (ticks(11) + ticks(12)) * TICK_NS,
    waitedNs: (ticks(13) + ticks(14)) * TICK_NS,
  }
}

/** Parses /proc/PID/task/TID/schedstat: returns nanoseconds on a CPU. */
export const parseSchedstat = (text: string): number => Number(text.slice(0, text.indexOf(' ')))

/** Returns `VmRSS` of /proc/PID/status in bytes; 0 for a process without user memory. */
export const parseResidentBytes = (status: string): number => {
  const found = /^VmRSS:\s+(\d+) kB$/m.exec(status)
  return found ? Number(found[1]) * 1024 : 0
}

/** Returns `Pss` of /proc/PID/smaps_rollup in bytes: its own memory, and its share of what processes share. */
export const parseProportionalBytes = (rollup: string): number => {
  const found = /^Pss:\s+(\d+) kB$/m.exec(rollup)
  return found ? Number(found[1]) * 1024 : 0
}

interface CoreTimes {
  busyTicks: number
  allTicks: number
}

/** The first line of /proc/stat (proc_stat(5)): all cores together. Idle time and waiting for disks are not busy. */
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

/** Parses a list of cores such as `0-3,8`. */
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

/** Returns the CPU time of the processes since their start, in nanoseconds. Processes that ended count nothing. */
export const cpuNs = (pids: readonly number[]): number => {
  let sum = 0
  for (const pid of pids) {
    const stat = unlessGone(() => parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1')), null)
    if (stat) sum += Math.max(schedstatNs(pid), stat.ownNs) + stat.waitedNs
  }
  return sum
}

/** Returns the resident memory of the processes, in bytes. */
export const residentBytes = (pids: readonly number[]): number =>
  pids.reduce(
    (sum, pid) =>
      sum + unlessGone(() => parseResidentBytes(readFileSync(`/proc/${pid}/status`, 'latin1')), 0),
    0,
  )

/** Returns the memory of the processes with what they share counted once, in bytes. */
export const proportionalBytes = (pids: readonly number[]): number =>
  pids.reduce(
    (sum, pid) =>
      sum + unlessGone(() => parseProportionalBytes(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')), 0),
    0,
  )

/** Returns the process and all its descendants, itself first. */
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

/** Returns the command line of a process, its arguments joined by spaces; empty when it has ended. */
export const commandLine = (pid: number): string =>
  unlessGone(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'), '')
    .replaceAll('\0', ' ')
    .trim()

/** Returns the cores that a process may use; this process by default. */
export const allowedCores = (pid: number = process.pid): number[] =>
  parseCpuList(/^Cpus_allowed_list:\s+(.+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1]!)

/** Returns this process's limit of open files, which its children inherit. */
export const openFilesLimit = (): number => {
  const limits = readFileSync('/proc/self/limits', 'latin1')
  const soft = /^Max open files\s+(\S+)/m.exec(limits)![1]!
  return soft === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(soft)
}

/** Returns how busy the whole machine is while `wait` lasts, in percent. */
export const busyPercentDuring = async (wait: Promise<unknown>): Promise<number> => {
  const before = parseCoreTimes(readFileSync('/proc/stat', 'latin1'))
  await wait
  const after = parseCoreTimes(readFileSync('/proc/stat', 'latin1'))
  return (100 * (after.busyTicks - before.busyTicks)) / Math.max(1, after.allTicks - before.allTicks)
}
