import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import {
  cpuNs,
  parseCoreTimes,
  parseCpuList,
  parseResidentBytes,
  parseSchedstat,
  parseStat,
  processTree,
  residentBytes,
} from '../../bench/harness/proc.ts'

const STAT =
  '2975 (a (b) c) S 2970 2975 2975 0 -1 4194560 3373 147681 0 205 7 2 420 168 20 0 1 0 47078 5124096 927 0'

t.test('a stat line is read past a name with brackets and blanks in it', async (t) => {
  t.same(parseStat(STAT), { ppid: 2970, ownNs: 90_000_000, waitedNs: 5_880_000_000 })
})

t.test('schedstat begins with nanoseconds on a CPU', async (t) => {
  t.equal(parseSchedstat('30060478 12282311 99\n'), 30_060_478)
})

t.test('resident memory is in kB in the file and in bytes here', async (t) => {
  t.equal(parseResidentBytes('Name:\tx\nVmHWM:\t  9 kB\nVmRSS:\t    2048 kB\nThreads:\t1\n'), 2_097_152)
  t.equal(parseResidentBytes('Name:\tkthreadd\nThreads:\t1\n'), 0)
})

t.test('a list of cores has single ones and ranges', async (t) => {
  t.same(parseCpuList('0-2,5\n'), [0, 1, 2, 5])
  t.same(parseCpuList('3'), [3])
})

t.test('waiting for a disk is not being busy, being robbed by the host is', async (t) => {
  t.same(parseCoreTimes('cpu  10 1 5 100 20 2 3 4 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n'), {
    busyTicks: 25,
    allTicks: 145,
  })
})

t.test('a child belongs to the tree, its work counts, and a process that ended counts nothing', async (t) => {
  const child = spawn(process.execPath, ['-e', 'process.stdin.resume(); process.stdout.write("up")'])
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  const pid = child.pid!
  t.ok(processTree(process.pid).includes(pid))
  t.ok(cpuNs([pid]) > 0)
  t.ok(residentBytes([pid]) > 1_000_000)
  child.stdin.end()
  await once(child, 'exit')
  t.notOk(processTree(process.pid).includes(pid))
  t.equal(cpuNs([pid]), 0)
  t.equal(residentBytes([pid]), 0)
})
