/**
 * The small test files of one folder and its subfolders in one process: starting one costs more than what most of them
 * do. Each file is a subtest under its own path. It is what it is alone: the `tap` that it imports is its subtest.
 */
import module from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { filesOfSharedProcess } from './shared-process-files.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** As long as a file with a separate process may take: `timeout` of `.taprc`. */
const FILE_BOUND_MS = 900_000
const SUBTESTS = Symbol.for('subtest of each file')

/** Runs every test file that belongs to the process of the module `url`, one after another. */
export async function runTestFiles(url: string): Promise<void> {
  const folder = dirname(fileURLToPath(url))
  const subtests = new Map<string, Test>()
  Object.assign(globalThis, { [SUBTESTS]: subtests })
  module.registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'tap' && context.parentURL !== undefined && subtests.has(context.parentURL)
        ? { url: sourceOf(context.parentURL), shortCircuit: true }
        : next(specifier, context),
  })
  const files = filesOfSharedProcess(folder)
  t.setTimeout(files.length * FILE_BOUND_MS)
  for (const name of files) {
    const path = join(folder, name)
    const file = pathToFileURL(path).href
    await t.test(relative(ROOT, path), async (subtest) => {
      subtest.setTimeout(FILE_BOUND_MS)
      subtests.set(file, subtest)
      await import(file)
    })
  }
}

/** The source of a separate module for each file. */
const sourceOf = (file: string): string =>
  `data:text/javascript,${encodeURIComponent(
    `export default globalThis[Symbol.for(${JSON.stringify(SUBTESTS.description)})].get(${JSON.stringify(file)})`,
  )}`
