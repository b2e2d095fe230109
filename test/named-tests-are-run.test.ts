/** Paths for the runner of tests. One that names no test is an error: without it, every test would run for minutes. */
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { NODE_ARGS } from './support/plain-children.ts'
import { ROOT } from './support/source-files.ts'

const RUN_BOUND_MS = 60_000

/** Without what tap passes on to its tests: a run within one would write to the same output file. */
const ENV = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^_?TAP/.test(name)))

const runOf = (...words: readonly string[]) =>
  spawnSync(process.execPath, [...NODE_ARGS, 'test/support/run.ts', ...words], {
    cwd: ROOT,
    env: ENV,
    encoding: 'utf8',
    timeout: RUN_BOUND_MS,
  })

for (const word of ['test/no-such.test.ts', '--with=test/no-such-folder'])
  t.test(word, async (t) => {
    const run = runOf('test/tidy.test.ts', word)
    t.equal(run.status, 1)
    t.match(run.stderr, `${word}: there is no such`)
    t.equal(run.stdout, '')
  })

t.test('a folder is its tests, those of a shared process and others', async (t) => {
  const run = runOf('test/schemas', 'test/src/core/people')
  t.equal(run.status, 0)
  t.match(run.stdout, '# Subtest: test/schemas/shared-process.ts')
  t.match(run.stdout, /# Subtest: test\/src\/core\/people\/.*\.test\.ts/)
})
