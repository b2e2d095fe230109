/** Runs the test files of its arguments in one process. A comment in the output begins each. */
import { resolve } from 'node:path'
import t from 'tap'
import { FILE_COMMENT } from './tap-page.ts'

for (const file of process.argv.slice(2)) {
  t.comment(FILE_COMMENT + file)
  await import(resolve(file)).catch((error: unknown) =>
    t.test('it is loaded', async () => {
      throw error
    }),
  )
}
