/**
 * Loaded before our modules in every process of a test: keeps what Node.js makes of them, the JavaScript without types
 * and its compiled code, for the next process. A test of the whole service starts half a dozen.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import module from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { find, keepFound } from './found-once.mjs'

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/tollgate/', import.meta.url))
const STRIPPED = join(CACHE, 'stripped', process.version)

/** A program of ours has loaded its modules by then. */
const LOADED_AFTER_MS = 1_500

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

/** One file for each module, with what tells one version of its source from another at the end. */
function stripped(url) {
  const file = fileURLToPath(url)
  const { mtimeNs, ctimeNs, size } = statSync(file, { bigint: true })
  const path = join(STRIPPED, digest(url))
  const mark = `\n//${mtimeNs} ${ctimeNs} ${size}`
  try {
    const kept = readFileSync(path, 'utf8')
    if (kept.endsWith(mark)) return kept
  } catch {
    // Made now.
  }
  const code = strip(readFileSync(file, 'utf8')) + mark
  keep(path, code)
  return code
}

function keep(path, code) {
  const aside = `${path}.${process.pid}`
  try {
    writeFileSync(aside, code)
    renameSync(aside, path)
  } catch {
    // Another user's, or a full disk: the next process makes it again.
  }
}

/** RxJS brings itself in one file too, which loads in a tenth of the time that its two hundred modules take. */
const require = module.createRequire(import.meta.url)
const RXJS = fileURLToPath(new URL('../../node_modules/rxjs/dist/bundles/rxjs.umd.js', import.meta.url))

/** A module that passes on the exports of a script. */
function exportsOf(path) {
  const names = Object.keys(require(path)).join(', ')
  const loading = `createRequire(${JSON.stringify(import.meta.url)})(${JSON.stringify(path)})`
  return `import { createRequire } from 'node:module'\nexport const { ${names} } = ${loading}\n`
}

try {
  mkdirSync(STRIPPED, { recursive: true })
} catch {
  // The checkout is another user's: nothing is kept.
}
module.enableCompileCache(join(CACHE, 'compiled'))
// A process that is killed has written nothing at its end, and most of those under test are.
const timer = setTimeout(() => {
  module.flushCompileCache()
  keepFound()
}, LOADED_AFTER_MS)
timer.unref()
process.once('exit', keepFound)
module.registerHooks({
  resolve(specifier, context, next) {
    if (specifier === 'rxjs') return { url: `${import.meta.url}?rxjs`, format: 'module', shortCircuit: true }
    // Our modules say where they are: nothing has to be looked for.
    if (/^\.\.?\/.*\.ts$/.test(specifier) && context.parentURL?.startsWith('file:'))
      return { url: new URL(specifier, context.parentURL).href, format: 'module', shortCircuit: true }
    return find(specifier, context, next)
  },
  load(url, context, next) {
    if (url.endsWith('?rxjs')) return { format: 'module', source: exportsOf(RXJS), shortCircuit: true }
    if (!url.startsWith('file:') || !url.endsWith('.ts') || url.includes('/node_modules/'))
      return next(url, context)
    return { format: 'module', source: stripped(url), shortCircuit: true }
  },
})
