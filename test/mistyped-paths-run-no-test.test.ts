/** A path that names no test is an error: without it, every test would run for minutes. */
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { NODE_ARGS } from './support/plain-children.ts'
import { ROOT } from './support/source-files.ts'

const RUN_BOUND_MS = 10_000

for (const word of ['test/no-such.test.ts', '--with=test/no-such-folder'])
  t.test(word, async (t) => {
    const run = spawnSync(
      process.execPath,
      [...NODE_ARGS, 'test/support/run.ts', 'test/tidy.test.ts', word],
      {
        cwd: ROOT,
        encoding: 'utf8',
        timeout: RUN_BOUND_MS,
      },
    )
    t.equal(run.status, 1)
    t.match(run.stderr, `${word}: there is no such`)
    t.equal(run.stdout, '')
  })
