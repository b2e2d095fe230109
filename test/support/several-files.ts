/**
 * Runs the test files of its arguments in one process, one after the other. A comment in the output begins each. The
 * next is loaded when the tests of the one before are over: loading it would hold them up.
 */
import { resolve } from 'node:path'
import { FILE_COMMENT } from './tap-page.ts'

const files = process.argv.splice(2)
// Tap names the folders of tests by the arguments, and a file system has no name as long as all of them.
process.argv.push(files[0]!)
const { default: t } = await import('tap')

for (const file of files) {
  t.comment(FILE_COMMENT + file)
  await t.test('it is loaded', () => import(resolve(file)))
}
