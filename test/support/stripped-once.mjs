/**
 * Loaded before our modules in every process of a test: keeps what Node.js makes of them, the JavaScript without types
 * and its compiled code, for the next process. A test of the whole service starts half a dozen.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import module from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/tollgate/', import.meta.url))
const STRIPPED = join(CACHE, 'stripped', process.version)

const digest = (text) => createHash('sha256').update(text).digest('base64url')

/** Without the warning that this function is experimental: the output of what is under test is its own. */
function strip(source) {
  const { emitWarning } = process
  process.emitWarning = () => undefined
  try {
    return module.stripTypeScriptTypes(source)
  } finally {
    process.emitWarning = emitWarning
  }
}

/** One file for each module, with the digest of its source at the end. */
function stripped(url) {
  const source = readFileSync(fileURLToPath(url), 'utf8')
  const path = join(STRIPPED, digest(url))
  const mark = `\n//${digest(source)}`
  try {
    const kept = readFileSync(path, 'utf8')
    if (kept.endsWith(mark)) return kept
  } catch {
    // Made now.
  }
  const code = strip(source) + mark
  const aside = `${path}.${process.pid}`
  writeFileSync(aside, code)
  renameSync(aside, path)
  return code
}

mkdirSync(STRIPPED, { recursive: true })
module.enableCompileCache(join(CACHE, 'compiled'))
module.registerHooks({
  load: (url, context, next) =>
    url.startsWith('file:') && url.endsWith('.ts') && !url.includes('/node_modules/')
      ? { format: 'module', source: stripped(url), shortCircuit: true }
      : next(url, context),
})
