/** The bench of calls: its options, programs, measures and report. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { chooseCores, endAll, pin, startChild } from '../../bench/harness/children.ts'
import { readPlacement, startCoreLatency } from '../../bench/harness/core-latency.ts'
import {
  allowedCores,
  cpuNs,
  parseCoreTimes,
  parseCpuList,
  parseProportionalBytes,
  parseResidentBytes,
  parseSchedstat,
  parseStat,
  processTree,
  proportionalBytes,
  residentBytes,
} from '../../bench/harness/proc.ts'
import { median, quantile, Samples } from '../../bench/harness/statistics.ts'
import { nextMessage } from '../../bench/harness/wait.ts'
import { EventCounter } from '../../bench/load/event-counter.ts'
import { checkBody } from '../../bench/load/probe.ts'
import { requestBody } from '../../bench/load/request.ts'
import { ResponseReader } from '../../bench/load/response-reader.ts'
import { chooser, parseOptions } from '../../bench/options.ts'
import { isMet } from '../../bench/report/aim.ts'
import { listAims } from '../../bench/report/calls/aims.ts'
import { comparisonTables } from '../../bench/report/calls/comparison.ts'
import { areComparable, inPlacement, placementsIn } from '../../bench/report/calls/placement.ts'
import { printReport } from '../../bench/report/calls/report.ts'
import { addedTo, computeMedian, type Results, type Row, ratioTo } from '../../bench/report/calls/results.ts'
import { printRemarks, printTables } from '../../bench/report/calls/tables.ts'
import { makeScale, toSvg } from '../../bench/report/chart.ts'
import { toPage } from '../../bench/report/report.ts'
import { figure, toMarkdown, toText } from '../../bench/report/table.ts'
import { rotate } from '../../bench/runner.ts'
import { nullJournal } from '../../bench/subjects/null-journal.ts'
import { readRole } from '../../bench/subjects/tollgate-processes.ts'
import {
  chunkAt,
  DONE,
  readProfile,
  SMALL_BODY,
  streamText,
  TOKEN,
  usageChunk,
} from '../../bench/upstream/replies.ts'
import { startUpstream } from '../../bench/upstream/start.ts'
import type { Metrics } from '../../bench/workloads/workload.ts'
import type { Settlement } from '../../schemas/call-log/columns.ts'
import type { Credentials } from '../../src/credentials/credentials.ts'
import { WalletView } from '../../src/credentials/wallet.ts'
import { findProgram } from '../../src/embedded/programs.ts'

t.test('command line', async (t) => {
  const RUN = fileURLToPath(new URL('../../bench/run.ts', import.meta.url))
  const KNOWN = ['nginx', 'tollgate', 'small', 'paced']
  const SUBJECTS = ['nginx', 'tollgate']
  const WORKLOADS = ['small', 'paced']
  const SMALL_RUN = ['--quick', '--out']
  const POLL_MS = 50

  t.jobs = 3
  const AT_ONCE = { buffered: true }

  t.test('naming some of a kind leaves out the others of that kind alone', async (t) => {
    const options = parseOptions(['--only', 'nginx', '--skip', 'paced'], KNOWN)
    t.same(SUBJECTS.filter(chooser(SUBJECTS, options)), ['nginx'])
    t.same(WORKLOADS.filter(chooser(WORKLOADS, options)), ['small'])
  })

  t.test('without options everything is chosen, in full', async (t) => {
    const options = parseOptions([], KNOWN)
    t.same(options, {
      help: false,
      quick: false,
      only: null,
      skip: [],
      with: [],
      peers: [],
      port: 0,
      out: null,
    })
    t.same(SUBJECTS.filter(chooser(SUBJECTS, options)), SUBJECTS)
  })

  t.test('wrong usage is an error', async (t) => {
    t.throws(() => parseOptions(['--fast'], KNOWN), /--fast/)
    t.throws(() => parseOptions(['--only', 'apache'], KNOWN), /"apache"/)
    t.throws(() => parseOptions(['small'], KNOWN), /'small'/)
    t.throws(() => parseOptions(['--port', '70000'], KNOWN), /--port must be/)
  })

  t.test('a subject on request takes part only where it is named', async (t) => {
    const choose = (...args: string[]) =>
      SUBJECTS.filter(chooser(SUBJECTS, parseOptions(args, KNOWN), ['tollgate']))
    t.same(choose(), ['nginx'])
    t.same(choose('--with', 'tollgate'), SUBJECTS)
    t.same(choose('--only', 'tollgate'), ['tollgate'])
    t.same(choose('--only', 'nginx', '--with', 'tollgate'), SUBJECTS)
    t.same(choose('--with', 'tollgate', '--skip', 'tollgate'), ['nginx'])
  })

  t.test('a peer needs an address on this machine, a model and a process', async (t) => {
    const read = (...specs: string[]) =>
      parseOptions(
        specs.flatMap((spec) => ['--peer', spec]),
        KNOWN,
      ).peers
    const [peer, other] = read(
      'mine=http://127.0.0.1:3000/v1,model=m,key=k,pid=1,header=x-a:b:c,does=counts tokens',
      'yours=http://localhost:4000/v1,model=m,pid=1',
    )
    t.match(peer, { name: 'mine', title: 'mine', work: 'counts tokens' })
    t.match(other, { name: 'yours', work: 'not given' })
    for (const [spec, reason] of [
      ['mine', /NAME=URL/],
      ['mine=http://example.com/v1,model=m,pid=1', /127\.0\.0\.1/],
      ['mine=https://127.0.0.1:3000/v1,model=m,pid=1', /http:/],
      ['mine=http://127.0.0.1:3000/v1,pid=1', /model= is missing/],
      ['mine=http://127.0.0.1:3000/v1,model=m', /pid= must be/],
      ['mine=http://127.0.0.1:3000/v1,model=m,pid=x', /pid= must be/],
      ['mine=http://127.0.0.1:3000/v1,model=m,pid=1,size=3', /"size" is not one of/],
      ['mine=http://127.0.0.1:3000/v1,model=m,pid=1,header=x', /header= must be/],
      ['nginx=http://127.0.0.1:3000/v1,model=m,pid=1', /"nginx" is the name of another/],
    ] as const)
      t.throws(() => read(spec), reason, spec)
  })

  /** Processes that were started, by whomever, with the mark in their environment. */
  const marked = (mark: string): string[] =>
    readdirSync('/proc').filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark)
      } catch {
        return false // it has ended, or is not ours to read
      }
    })

  const startRun = (out: string, only: string): { run: ChildProcess; mark: string; output: () => string } => {
    const mark = randomUUID()
    const run = spawn(process.execPath, [RUN, ...SMALL_RUN, out, '--only', only], {
      env: { ...process.env, MARK: mark, TMPDIR: out },
    })
    let output = ''
    for (const stream of [run.stdout, run.stderr])
      stream.on('data', (piece) => {
        output += piece
      })
    return { run, mark, output: () => output }
  }

  t.test('a small run writes a table, a chart and its figures, and leaves no process', AT_ONCE, async (t) => {
    const out = t.testdir()
    const { run, mark, output } = startRun(out, 'direct,uws-undici,first-byte')
    const [code] = await once(run, 'close')
    t.equal(code, 0, output())
    t.match(output(), /Latency at a steady rate/)
    t.match(readFileSync(join(out, 'latest.md'), 'utf8'), '![')
    t.match(readFileSync(join(out, 'latest.svg'), 'utf8'), '</svg>')
    const results = JSON.parse(readFileSync(join(out, 'latest.json'), 'utf8')) as Results
    t.same(
      results.rows.map(({ subject, rounds }) => [subject, rounds.length]),
      [
        ['direct', 1],
        ['uws-undici', 1],
      ],
    )
    t.same(marked(mark), [])
  })

  for (const signal of ['SIGINT', 'SIGKILL'] as const)
    t.test(`${signal} in the middle leaves no process`, AT_ONCE, async (t) => {
      const { run, mark, output } = startRun(t.testdir(), 'uws-undici,first-byte')
      while (!output().includes('streams, 100 a second')) {
        if (run.exitCode !== null) throw new Error(output())
        await delay(POLL_MS)
      }
      t.ok(marked(mark).length >= 4, 'the bench, the upstream, the load generator, the subject')
      run.kill(signal)
      const [code] = await once(run, 'close')
      t.equal(code, signal === 'SIGINT' ? 130 : null)
      while (marked(mark).length > 0) await delay(POLL_MS)
      t.pass('all have ended')
    })
})

t.test('usage is checked first', async (t) => {
  // Wrong usage of a bench exits 2 and starts nothing; help exits 0.
  const run = (bench: string, ...args: string[]) => {
    const program = fileURLToPath(new URL(`../../bench/${bench}`, import.meta.url))
    return spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' })
  }

  for (const [bench, option, wrong, refusal] of [
    ['run.ts', '--skip', 'apache', '"apache"'],
    ['logs/run.ts', '--rows', 'many', '--rows must be'],
    ['search/run.ts', '--pages', 'none', '"none"'],
    ['tasks/run.ts', '--tasks', 'none', '"none"'],
  ] as const)
    t.test(bench, async (t) => {
      t.match(run(bench, option, wrong), { status: 2, stderr: refusal })
      t.match(run(bench, '--help'), { status: 0, stdout: option })
    })
})

t.test('statistics', async (t) => {
  t.test('a quantile is the nearest rank: always a sample that was seen', async (t) => {
    const hundred = Array.from({ length: 100 }, (_, i) => i + 1)
    t.equal(quantile(hundred, 0.5), 50)
    t.equal(quantile(hundred, 0.99), 99)
    t.equal(quantile(hundred, 0), 1)
    t.equal(quantile(hundred, 1), 100)
    t.equal(quantile([7], 0.99), 7)
    t.ok(Number.isNaN(quantile([], 0.5)))
  })

  t.test('the median of an even number of values lies between the middle two', async (t) => {
    t.equal(median([9, 1, 5]), 5)
    t.equal(median([4, 1, 3, 2]), 2.5)
    t.ok(Number.isNaN(median([])))
  })

  t.test('samples are sorted by size, not as text, and never silently dropped', async (t) => {
    const samples = new Samples(3)
    for (const value of [100, 9, 20]) samples.add(value)
    t.same(samples.quantiles(0, 0.5, 1), [9, 20, 100])
    t.throws(() => samples.add(1), RangeError)
    t.equal(samples.count, 3)
  })
})

const CHUNKS = 6

t.test('event counter', async (t) => {
  const STREAM = Array.from({ length: CHUNKS }, (_, i) => chunkAt(i, CHUNKS)).join('') + DONE

  const count = (text: string, size: number): EventCounter => {
    const counter = new EventCounter()
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; at += size) counter.add(bytes.subarray(at, at + size))
    return counter
  }

  t.test('events are counted however the bytes are cut', async (t) => {
    for (let size = 1; size <= 300; size++) {
      const counter = count(STREAM, size)
      t.equal(counter.events, CHUNKS + 1, `cut at every ${size} bytes`)
      t.ok(counter.done)
    }
  })

  t.test('a stream that does not end in [DONE] is not done', async (t) => {
    t.notOk(count(STREAM.slice(0, -1), 7).done)
    t.notOk(count(`${STREAM}data: {}\n\n`, 7).done)
    t.notOk(new EventCounter().done)
  })

  t.test('three newlines are one event end, and reset forgets all', async (t) => {
    const counter = count('a\n\n\n', 1)
    t.equal(counter.events, 1)
    counter.reset()
    t.equal(counter.events, 0)
    counter.add(Buffer.from('\nb\n\n'))
    t.equal(counter.events, 1)
  })

  t.test('another mark is counted however the bytes are cut', async (t) => {
    const text = streamText(9)
    for (let size = 1; size <= 20; size++) {
      const counter = new EventCounter(Buffer.from(TOKEN))
      const bytes = Buffer.from(`{" tok":1}${text} to tokentoken ${TOKEN}`)
      for (let at = 0; at < bytes.length; at += size) counter.add(bytes.subarray(at, at + size))
      t.equal(counter.events, 9, `cut at every ${size} bytes`)
    }
  })

  t.test('the probe takes the upstream as it is and nothing else', async (t) => {
    t.doesNotThrow(() => checkBody('burst', CHUNKS, STREAM))
    t.doesNotThrow(() => checkBody('small', 0, SMALL_BODY))
    t.throws(() => checkBody('burst', CHUNKS + 1, STREAM), /not the upstream's text/)
    t.throws(() => checkBody('burst', CHUNKS, STREAM.replace(DONE, '')), /without \[DONE\]/)
    t.throws(() => checkBody('small', 0, '{"choices":[]}'), /not the upstream's answer/)
  })

  t.test('the upstream knows what a request asks for, and counts tokens as it sends them', async (t) => {
    t.equal(readProfile(Buffer.from(requestBody('paced', 'gpt'))), 'paced')
    t.equal(readProfile(Buffer.from('{"content":"[bench-other] Summarize"}')), null)
    t.equal(readProfile(Buffer.from('{}')), null)
    t.match(usageChunk(CHUNKS), /"completion_tokens":4,/)
  })
})

t.test('the upstream takes a body in chunks, and lists its model', async (t) => {
  t.teardown(endAll)
  const pace = { chunks: CHUNKS, perSecond: 10 }
  const { port } = await startUpstream(
    { burst: pace, brief: pace, paced: pace, held: pace, tls: null, port: 0 },
    null,
  )
  const body = new Blob([requestBody('burst', 'any')]).stream()
  const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    body,
    duplex: 'half',
  })
  checkBody('burst', CHUNKS, await answer.text())
  t.match(await (await fetch(`http://127.0.0.1:${port}/v1/models`)).json(), { data: [{ id: 'bench' }] })
})

t.test('proc', async (t) => {
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

  t.test('the proportional share of memory is in kB in the file and in bytes here', async (t) => {
    t.equal(parseProportionalBytes('Rss:    4096 kB\nPss:    1024 kB\nPss_Dirty: 9 kB\n'), 1_048_576)
    t.equal(parseProportionalBytes(''), 0)
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

  t.test(
    'a child belongs to the tree, its work counts, and a process that ended counts nothing',
    async (t) => {
      const child = spawn(process.execPath, ['-e', 'process.stdin.resume(); process.stdout.write("up")'])
      t.teardown(() => child.kill('SIGKILL'))
      await once(child.stdout, 'data')
      const pid = child.pid!
      t.ok(processTree(process.pid).includes(pid))
      t.ok(cpuNs([pid]) > 0)
      t.ok(residentBytes([pid]) > 1_000_000)
      t.ok(proportionalBytes([pid]) > 100_000)
      child.stdin.end()
      await once(child, 'exit')
      t.notOk(processTree(process.pid).includes(pid))
      t.equal(cpuNs([pid]), 0)
      t.equal(residentBytes([pid]), 0)
    },
  )
})

t.test('pin', async (t) => {
  const skip = findProgram('taskset') === null && 'needs taskset'

  t.test('a process that runs is moved to a core', { skip }, async (t) => {
    const child = spawn('sleep', ['60'])
    t.teardown(() => child.kill('SIGKILL'))
    await once(child, 'spawn')
    const core = allowedCores().at(-1)!
    pin(child.pid!, core)
    t.same(allowedCores(child.pid), [core])
  })

  t.test('one that has ended is nobody to move', { skip }, async (t) => {
    const child = spawn('true')
    await once(child, 'close')
    t.doesNotThrow(() => pin(child.pid!, allowedCores()[0]!))
  })
})

t.test('core latency', async (t) => {
  const cores = chooseCores()

  t.teardown(endAll)

  t.test('the round trip between two cores is measured on each request', { skip: !cores }, async (t) => {
    const roundTrip = await startCoreLatency(cores!)
    for (let asked = 0; asked < 3; asked++) {
      let nanoseconds = await roundTrip()
      // Other tests may have one of the cores.
      while (nanoseconds === null) nanoseconds = await roundTrip()
      t.ok(nanoseconds > 0)
    }
  })

  t.test('a short round trip means a shared cache', async (t) => {
    t.same([60, 100, 500].map(readPlacement), ['shared cache', 'shared cache', 'separate caches'])
  })

  t.test('waiting for a child that ends without an answer fails', async (t) => {
    const child = await startChild('the talker', process.execPath, ['-e', 'console.log("no more")'], {
      core: null,
      messages: true,
    })
    await t.rejects(nextMessage(child), { message: /the talker ended without an answer/ })
  })
})

t.test('null journal', async (t) => {
  // The journal of the bench's gateway without settlement.
  t.test('a charged call leaves nothing unbooked in the wallets of its account and its key', async (t) => {
    const totals = { balance: 100n, held: 0n, used: 0n, version: 1n }
    const wallets = new Map(
      ['acc_1', 'key_1'].map((id) => [id, new WalletView({ ...totals, accountId: id })] as const),
    )
    const journal = nullJournal()
    journal.start({ findWallet: (id: string) => wallets.get(id) } as Credentials)
    for (const wallet of wallets.values()) {
      t.ok(wallet.admit(9n, true))
      wallet.end(9n, 7n)
      t.equal(wallet.unbooked, 7n)
    }
    let written = 0
    journal.journal.settle(
      null,
      { account_id: 'acc_1', key_id: 'key_1', cost: '7' } as Settlement,
      () => written++,
    )
    t.equal(written, 1)
    for (const wallet of wallets.values()) t.equal(wallet.unbooked, 0n)
  })
})

t.test('response reader', async (t) => {
  interface Seen {
    status: number
    body: string
    ended: boolean
  }

  const reading = (): { reader: ResponseReader; seen: Seen[] } => {
    const seen: Seen[] = []
    const reader = new ResponseReader({
      head: (status) => {
        seen.push({ status, body: '', ended: false })
      },
      body: (piece) => {
        seen.at(-1)!.body += piece.toString()
      },
      end: () => {
        seen.at(-1)!.ended = true
      },
    })
    return { reader, seen }
  }

  const FIXED = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'
  const CHUNKED =
    'HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\nt: 1\r\n\r\n'
  const EMPTY = 'HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n'

  t.test('responses are the same however their bytes are cut', async (t) => {
    const bytes = Buffer.from(FIXED + CHUNKED + EMPTY + FIXED)
    for (let size = 1; size <= bytes.length; size++) {
      const { reader, seen } = reading()
      for (let at = 0; at < bytes.length; at += size) reader.read(bytes.subarray(at, at + size))
      t.same(
        seen,
        [
          { status: 200, body: 'hello', ended: true },
          { status: 201, body: 'abc0123456789', ended: true },
          { status: 204, body: '', ended: true },
          { status: 200, body: 'hello', ended: true },
        ],
        `cut at every ${size} bytes`,
      )
      t.ok(reader.idle)
    }
  })

  t.test('a response that is not over is not idle', async (t) => {
    const { reader, seen } = reading()
    reader.read(Buffer.from(FIXED.slice(0, -1)))
    t.notOk(reader.idle)
    t.equal(seen[0]!.ended, false)
  })

  for (const [what, text] of [
    ['another protocol', 'SMTP ready\r\n\r\n'],
    ['neither length nor chunks', 'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n'],
    ['a chunk size that is no number', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n'],
    ['a chunk longer than its size', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n'],
    ['a head without end', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}`],
  ] as const)
    t.test(`${what} is an error`, async (t) => {
      t.throws(() => reading().reader.read(Buffer.from(text)))
    })
})

t.test('tollgate processes', async (t) => {
  t.test('each process of the service is known by its command line', async (t) => {
    const roles = {
      'node /home/tollgate/src/main.ts --role=gateway --index=0': 'gateway',
      'tollgate: gateway 0': 'gateway',
      'tollgate: settler 0': 'settler',
      'tollgate: tasks 0': 'tasks',
      'node /home/tollgate/src/embedded/clickhouse/server.ts': 'clickhouse',
      '/home/tollgate/postgres/bin/postgres -D /tmp/bench/data/postgres': 'postgres',
      'postgres: checkpointer': 'postgres',
      '/usr/sbin/nats-server -c /tmp/bench/data/nats.conf': 'nats',
      'node src/main.ts serve': 'supervisor',
    }
    t.same(Object.keys(roles).map(readRole), Object.values(roles))
  })
})

t.test('report', async (t) => {
  const subject = (name: string, title: string, skipped: string | null = null) => ({
    name,
    title,
    work: 'nothing',
    settings: name === 'nginx' ? ['one worker'] : [],
    version: skipped ? '' : '1',
    skipped,
  })

  const thrice = <T>(look: T): T[][] => Array.from({ length: 3 }, () => [look])

  const RESULTS: Results = {
    date: '2026-01-01',
    size: 'full',
    rounds: 3,
    pinned: true,
    busyBeforePercent: 1,
    seconds: 10,
    machine: { cpu: 'A <fast> & "quiet" one', cores: 2, memoryGiB: 4, system: 'Linux' },
    node: '22',
    tollgate: '0.1.0',
    subjects: [
      subject('direct', 'straight'),
      subject('nginx', 'nginx'),
      subject('uws-client', 'bare'),
      subject('portkey', 'Portkey', 'no network'),
      subject('tollgate', 'Tollgate'),
    ],
    rows: [
      {
        workload: 'small',
        subject: 'nginx',
        failed: null,
        rounds: [10, 20, 12].map((n) => [{ cpuPerCallUs: n }]),
      },
      {
        workload: 'small',
        subject: 'uws-client',
        failed: null,
        rounds: [15, 30, 18].map((n) => [{ cpuPerCallUs: n }]),
      },
      {
        workload: 'small',
        subject: 'tollgate',
        failed: null,
        rounds: [19, 38, 24].map((n) => [{ cpuPerCallUs: n }]),
      },
      {
        workload: 'latency',
        subject: 'direct',
        failed: null,
        rounds: thrice({ p50Us: 50, p99Us: 90, p99AloneUs: 90 }),
      },
      {
        workload: 'latency',
        subject: 'tollgate',
        failed: null,
        rounds: thrice({ p50Us: 80, p99Us: 190, p99AloneUs: 150 }),
      },
      {
        workload: 'latency',
        subject: 'nginx',
        failed: null,
        rounds: thrice({ p50Us: 70, p99Us: 130, p99AloneUs: 130 }),
      },
      { workload: 'burst', subject: 'nginx', failed: 'status 502', rounds: [] },
      {
        workload: 'settled',
        subject: 'tollgate',
        failed: null,
        rounds: [[{ cpuPerCallUs: 160, natsPerCallUs: 9 }]],
      },
    ],
  }

  t.test('a figure is a median, and is compared within its own round', async (t) => {
    t.equal(computeMedian(RESULTS, 'small', 'nginx', 'cpuPerCallUs'), 12)
    t.equal(ratioTo(RESULTS, 'small', 'tollgate', 'nginx', 'cpuPerCallUs'), 1.9)
    t.equal(addedTo(RESULTS, 'latency', 'tollgate', 'direct', 'p99Us'), 100)
    t.equal(computeMedian(RESULTS, 'small', 'portkey', 'cpuPerCallUs'), null)
    t.equal(ratioTo(RESULTS, 'burst', 'tollgate', 'nginx', 'cpuPerChunkUs'), null)
  })

  t.test('aims compare with the bare parts; an aim is met, missed or not measured', async (t) => {
    const aims = listAims(RESULTS)
    t.same(aims.map(isMet), [true, null, false, true, false, null, null])
    t.equal(aims[0]!.value, 19 / 15)
  })

  t.test('the added 99th percentile is compared with what nginx adds', async (t) => {
    t.equal(listAims(RESULTS)[2]!.value, 100 / 40)
    t.equal(listAims(RESULTS)[3]!.value, 60 / 40, 'and with the engines stopped')
    const withoutNginx = RESULTS.rows.filter((row) => row.workload !== 'latency' || row.subject !== 'nginx')
    t.equal(listAims({ ...RESULTS, rows: withoutNginx })[2]!.value, null)
  })

  /** The small calls of a run during which the host moved the cores. */
  const moved = (subject: string, near: number, far: number): Row => ({
    workload: 'small',
    subject,
    failed: null,
    rounds: [0, 5, 10].map((more): Metrics[] => [
      { cpuPerCallUs: near, coreRoundTripNs: 90 + more },
      { cpuPerCallUs: (near + far) / 2 },
      { cpuPerCallUs: far, coreRoundTripNs: 500 + more },
    ]),
  })
  const MOVED: Results = { ...RESULTS, rows: [moved('nginx', 6, 12), moved('tollgate', 15, 18)] }

  t.test('samples of cores that share a cache are reported apart from others', async (t) => {
    t.same(placementsIn(RESULTS.rows), [])
    t.same(placementsIn(MOVED.rows), ['shared cache', 'separate caches'])
    t.equal(ratioTo(inPlacement(MOVED, 'shared cache'), 'small', 'tollgate', 'nginx', 'cpuPerCallUs'), 2.5)
    t.equal(ratioTo(inPlacement(MOVED, 'separate caches'), 'small', 'tollgate', 'nginx', 'cpuPerCallUs'), 1.5)
    const text = printTables(MOVED).map(toText).join('\n')
    t.match(text, /alone, shared cache\n.*alone, separate caches\n/s)
    t.same(printReport(MOVED).run.slice(-2), [
      '6 samples with shared cache: 95.0 ns for a round trip between the cores',
      '6 samples with separate caches: 505 ns for a round trip between the cores',
    ])
  })

  t.test('a placement with fewer than three samples has no figure', async (t) => {
    const row = moved('nginx', 6, 12)
    const rounds = row.rounds.map((looks, round) => (round === 2 ? looks.slice(0, 2) : looks))
    const seldom: Results = { ...MOVED, rows: [{ ...row, rounds }] }
    t.equal(computeMedian(inPlacement(seldom, 'shared cache'), 'small', 'nginx', 'cpuPerCallUs'), 6)
    t.equal(computeMedian(inPlacement(seldom, 'separate caches'), 'small', 'nginx', 'cpuPerCallUs'), null)
    t.equal(
      computeMedian(
        inPlacement({ ...seldom, rounds: 1 }, 'separate caches'),
        'small',
        'nginx',
        'cpuPerCallUs',
      ),
      12,
    )
  })

  t.test(
    'a workload repeats until all have samples in one placement, in rounds of the baseline',
    async (t) => {
      const far = moved('tollgate', 15, 18).rounds.map((looks) => looks.slice(2))
      const near = moved('nginx', 6, 12).rounds.map((looks) => looks.slice(0, 1))
      const row = (subject: string, rounds: Row['rounds']): Row => ({
        workload: 'small',
        subject,
        failed: null,
        rounds,
      })
      t.equal(areComparable(MOVED.rows), true)
      t.equal(areComparable(RESULTS.rows), true, 'the placement is not known')
      t.equal(areComparable([row('tollgate', far)]), true, 'there is no baseline')
      t.equal(areComparable([row('nginx', near), row('tollgate', far)]), false, 'never in one placement')
      const inOthers = [[], [], [], ...far]
      t.equal(areComparable([row('nginx', [...far, [], [], []]), row('tollgate', inOthers)]), false)
      t.equal(areComparable([row('nginx', [...far, ...far]), row('tollgate', inOthers)]), true)
    },
  )

  t.test('each round begins with another subject', async (t) => {
    const orders = [0, 1, 2, 3].map((round) => rotate(['a', 'b', 'c'], round).join(''))
    t.same(orders, ['abc', 'bca', 'cab', 'abc'])
    t.same(rotate([], 1), [])
  })

  t.test('a figure shows three digits', async (t) => {
    t.same([0.123, 9.99, 9.996, 12.34, 99.96, 1234.5, -3, null, Number.NaN].map(figure), [
      '0.12',
      '9.99',
      '10.0',
      '12.3',
      '100',
      '1,235',
      '-3.00',
      '–',
      '–',
    ])
  })

  t.test('a table of text is aligned, names left and figures right', async (t) => {
    const table = {
      title: 'T',
      columns: ['', 'x'],
      rows: [
        ['a', '1'],
        ['long', '100'],
      ],
    }
    t.same(toText(table).split('\n').slice(2), ['        x', '─'.repeat(9), 'a       1', 'long  100'])
    t.equal(toMarkdown(table), '## T\n\n|  | x |\n| --- | ---: |\n| a | 1 |\n| long | 100 |')
    t.match(toMarkdown({ ...table, rows: [['a|b', '1']] }), 'a\\|b')
  })

  t.test('the report names what failed or was skipped', async (t) => {
    t.same(printRemarks(RESULTS), [
      'settings of nginx: one worker',
      'skipped: Portkey: no network',
      'FAILED: nginx under burst: status 502',
    ])
    const text = printTables(RESULTS).map(toText).join('\n')
    t.match(text, /nginx .*FAILED/)
    t.match(text, /settled call, .* 160 µs +60.0 µs +MISSED/)
    t.match(text, /small call, .* 1.27 x bare parts +2.10 x bare parts +met/)
    t.notMatch(text, /Portkey/)
    t.match(toPage(printReport(RESULTS), 'latest.svg'), /!\[.+\]\(latest\.svg\)/)
  })

  t.test('gateways stand side by side, and a row that one cannot do says why', async (t) => {
    const rest: Row = {
      workload: 'rest',
      subject: 'tollgate',
      failed: null,
      rounds: [[{ memoryMb: 640, busyPercent: 3, processes: 11 }]],
    }
    const burst: Row = { ...rest, workload: 'burst', rounds: [[{ cpuPerChunkUs: 2 }]] }
    const other = { ...subject('other', 'Other'), work: 'counts' }
    const small: Row = { ...rest, workload: 'rest', subject: 'other', rounds: [[{ memoryMb: 28 }]] }
    const [speed, size, losses] = comparisonTables({
      ...RESULTS,
      subjects: [...RESULTS.subjects, other],
      rows: [...RESULTS.rows, rest, burst, small],
    })
    t.same(speed!.columns, ['', 'nginx', 'Tollgate', 'Other'])
    t.same(speed!.rows, [
      ['CPU of its process per small call, µs', '12.0', '24.0', '–'],
      ['CPU per chunk of a burst, µs', 'failed (status 502)', '2.00', '–'],
      ['small call at 400 a second, p50 and p99, µs', '70.0, 130', '80.0, 190', '–, –'],
    ])
    t.same(size!.rows[0], ['what it does with a call', 'nothing', 'nothing', 'counts'])
    t.same(losses!.rows, [['memory of all processes at rest, MB', '640', '28.0 (Other)']])
    t.same(
      size!.rows.find(([title]) => title!.includes('at rest, MB')),
      ['memory of all processes at rest, MB', '–', '640', '28.0'],
    )
  })

  /** Returns the names of all elements. Throws where they do not nest. */
  const elementsOf = (xml: string): string[] => {
    const open: string[] = []
    const names: string[] = []
    for (const [, closing, name, rest] of xml.matchAll(
      /<(\/?)([a-zA-Z]+)((?:\s+[a-zA-Z0-9:-]+="[^"<]*")*\s*\/?)>/g,
    )) {
      if (closing) {
        if (open.pop() !== name) throw new Error(`</${name}> closes nothing`)
      } else {
        names.push(name!)
        if (!rest!.endsWith('/')) open.push(name!)
      }
    }
    if (open.length > 0) throw new Error(`left open: ${open}`)
    return names
  }

  const OWN_BAR = /<path[^>]+fill="#0969da"/g
  const OTHER_BAR = /<path[^>]+fill="#98a2ae"/g

  t.test('a chart is well-formed, and has a bar and a value for every figure', async (t) => {
    const svg = await toSvg(printReport(RESULTS).chart)
    const names = elementsOf(svg)
    t.equal(names.length, svg.match(/<[a-z]/g)!.length, 'nothing is like an element and is none')
    t.equal(names[0], 'svg')
    t.equal(svg.match(OWN_BAR)!.length, 3)
    t.equal(svg.match(OTHER_BAR)!.length, 3)
    for (const value of ['24.0', '18.0', '12.0', '30.0 (100)', '160']) t.match(svg, `>${value}</text>`)
    t.match(svg, 'A &lt;fast&gt; &amp; "quiet" one')
    t.notMatch(svg, /NaN|undefined|Infinity/)
    for (const [, light] of svg.matchAll(/(?:fill|stroke)="(#\w+)"/g))
      t.match(svg, `[fill="${light}"]`, `${light} has a colour for dark pages`)
  })

  t.test('a chart of a run that measured nothing is still a chart', async (t) => {
    t.equal(elementsOf(await toSvg(printReport({ ...RESULTS, rows: [] }).chart))[0], 'svg')
  })

  t.test('a lonely outlier does not set the scale, a common size does', async (t) => {
    const panel = (aim: number | null, ...values: number[]) => ({
      title: '',
      unit: '',
      aim,
      bars: values.map((value) => ({ label: '', value, note: '', own: false })),
    })
    t.equal(makeScale(panel(null, 16, 27, 1106)), 27)
    t.equal(makeScale(panel(null, 372, 11_000, 15_000)), 15_000)
    t.equal(makeScale(panel(30, 10, 20)), 33)
    t.equal(makeScale(panel(null, 0, 0, 0, 27, 143)), 143, 'a bar without length is no measure')
    t.ok(makeScale(panel(null, 0)) > 0)
  })
})
