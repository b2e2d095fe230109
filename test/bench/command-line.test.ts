import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { chooser, parseOptions } from '../../bench/options.ts'
import type { Results } from '../../bench/report/calls/results.ts'

const RUN = fileURLToPath(new URL('../../bench/run.ts', import.meta.url))
const KNOWN = ['nginx', 'tollgate', 'small', 'paced']
const SUBJECTS = ['nginx', 'tollgate']
const WORKLOADS = ['small', 'paced']
const SMALL_RUN = ['--quick', '--only', 'direct,uws-undici,first-byte', '--out']
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
  t.same(options, { help: false, quick: false, only: null, skip: [], out: null })
  t.same(SUBJECTS.filter(chooser(SUBJECTS, options)), SUBJECTS)
})

t.test('wrong usage is an error', async (t) => {
  t.throws(() => parseOptions(['--fast'], KNOWN), /--fast/)
  t.throws(() => parseOptions(['--only', 'apache'], KNOWN), /"apache"/)
  t.throws(() => parseOptions(['small'], KNOWN), /'small'/)
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

const startRun = (out: string): { run: ChildProcess; mark: string; output: () => string } => {
  const mark = randomUUID()
  const run = spawn(process.execPath, [RUN, ...SMALL_RUN, out], {
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
  const { run, mark, output } = startRun(out)
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
    const { run, mark, output } = startRun(t.testdir())
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
