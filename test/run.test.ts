/** The runner of tests: what it runs, and the page that it prints. */
import { spawnSync } from 'node:child_process'
import { join, relative } from 'node:path'
import t from 'tap'
import { ROOT } from './support/source-files.ts'

const RUN_BOUND_MS = 120_000
const TAP = "import t from 'tap'\n"

const runTests = (...words: readonly string[]) => runTestsWithin(undefined, ...words)

const runTestsWithin = (seconds: number | undefined, ...words: readonly string[]) =>
  spawnSync(process.execPath, ['test/support/run.ts', ...words], {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: RUN_BOUND_MS,
    env: { ...process.env, ...(seconds !== undefined && { TAP_TIMEOUT: String(seconds) }) },
  })

for (const word of ['test/no-such.test.ts', '--with=test/no-such-folder', '--no-such-option'])
  t.test(`${word} is an error`, async (t) => {
    const run = runTests(word)
    t.equal(run.status, 1)
    t.match(run.stderr, `${word}: there is no such`)
    t.equal(run.stdout, '')
  })

t.test('a folder is all of its tests, and one page says how they went', async (t) => {
  const folder = relative(
    ROOT,
    t.testdir({
      'passes.test.ts': `${TAP}t.test('one', async (t) => void t.ok(true))\n`,
      'empty.test.ts': '',
      below: {
        'checks-nothing.test.ts': `${TAP}t.test('nothing', async () => {})\n`,
        'fails.test.ts': `${TAP}t.test('sum', async (t) => {\n  t.equal(1 + 1, 3, 'as taught')\n  t.ok(true)\n})\n`,
        'breaks.test.ts': "throw new Error('broken on its way in')\n",
      },
    }),
  )
  const run = runTests(folder)
  t.equal(run.status, 1)
  const at = (name: string) => `FAILED ${join(folder, name)}`
  t.match(run.stdout, `${at('empty.test.ts')}\n  this file has no assertion`)
  t.match(run.stdout, `${at('below/checks-nothing.test.ts')}\n  this file has no assertion`)
  t.match(run.stdout, `${at('below/fails.test.ts:3')}\n  sum > as taught`)
  t.match(run.stdout, /-3\n +\+2\n/)
  t.match(run.stdout, `${at('below/breaks.test.ts')}\n  it ended with an error`)
  t.match(run.stdout, 'broken on its way in')
  t.match(run.stdout, /^2 passed, 4 failed, 5 files, \d+ s$/m)
  t.notMatch(run.stdout, 'passes.test.ts')
})

t.test('of files that share a process, one that breaks on its way in fails alone', async (t) => {
  const folder = t.testdir({
    'breaks.test.ts': "throw new Error('broken on its way in')\n",
    'passes.test.ts': `${TAP}t.test('later', async (t) => void t.ok(true))\n`,
  })
  const files = ['breaks', 'passes'].map((name) => join(folder, `${name}.test.ts`))
  const run = spawnSync(process.execPath, ['test/support/several-files.ts', ...files], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  t.equal(run.status, 1)
  const [, broken, passed] = run.stdout.split(/^# File: .*$/m)
  t.match(broken, /not ok \d+ - broken on its way in/)
  t.match(passed, /^ok \d+ - later/m)
  t.notMatch(passed, 'not ok')
})

t.test('what passes is said in a few lines', async (t) => {
  const folder = t.testdir({ 'passes.test.ts': `${TAP}t.ok(true)\n` })
  const run = runTests(relative(ROOT, folder))
  t.equal(run.status, 0)
  t.match(run.stdout, /^\nall output: \S+\.tap\n1 passed, 0 failed, 1 files, \d+ s\n$/)
})

t.test('a file that computes without end fails at its time limit, and the others run', async (t) => {
  const folder = relative(
    ROOT,
    t.testdir({
      // As a loop holds the thread, but not the processor.
      'endless.test.ts': `${TAP}t.test('loop', async () => {\n  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)\n})\n`,
      'passes.test.ts': `${TAP}t.ok(true)\n`,
    }),
  )
  const run = runTestsWithin(1, folder)
  t.equal(run.status, 1)
  t.match(run.stdout, `FAILED ${join(folder, 'endless.test.ts')}`)
  t.match(run.stdout, /^1 passed, \d failed, 2 files, \d+ s$/m)
})
