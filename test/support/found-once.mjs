/**
 * Where the modules of packages are, kept for the next process: looking for them, folder by folder and manifest by
 * manifest, is a sixth of what a service's process does until it runs, and a third of what the test runner does. What
 * was found is true until npm changes what is installed.
 */
import { appendFileSync, mkdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = new URL('../../', import.meta.url).href
const INSTALLED = `${ROOT}node_modules/`
const FOLDER = fileURLToPath(new URL('node_modules', ROOT))
const CACHE = fileURLToPath(new URL('node_modules/.cache/tollgate/found/', ROOT))

/** Specifier and parent, by how it is asked for: where it is and of which format, relative to the checkout. */
const known = new Map()
let added = ''
const path = pathOfNow()
for (const line of readKept()) {
  const fields = line.split('\t')
  // Where several processes wrote at once on a full disk, a line may be two halves.
  if (fields.length === 5) known.set(fields.slice(0, 3).join('\t'), fields.slice(3))
}

/** null where nobody says when packages were installed, or they are another checkout's: nothing is kept then. */
function pathOfNow() {
  try {
    if (realpathSync(FOLDER) !== FOLDER) return null
    const { mtimeMs } = statSync(new URL('.package-lock.json', INSTALLED))
    return join(CACHE, `${process.version}-${mtimeMs}`)
  } catch {
    return null
  }
}

function readKept() {
  try {
    return path === null ? [] : readFileSync(path, 'utf8').split('\n').slice(0, -1)
  } catch {
    return []
  }
}

/** As a hook that resolves does it. */
export function find(specifier, context, next) {
  const { parentURL, conditions = [], importAttributes = {} } = context
  const isOurs = parentURL?.startsWith(ROOT) && Object.keys(importAttributes).length === 0
  if (path === null || !isOurs) return next(specifier, context)
  const way = conditions.includes('import') ? 'import' : 'require'
  const key = `${way}\t${specifier}\t${parentURL.slice(ROOT.length)}`
  const [place, format] = known.get(key) ?? []
  if (place !== undefined) return { url: ROOT + place, format: format || undefined, shortCircuit: true }
  const result = next(specifier, context)
  if (result.url.startsWith(INSTALLED)) {
    const found = [result.url.slice(ROOT.length), result.format ?? '']
    known.set(key, found)
    added += `${key}\t${found.join('\t')}\n`
  }
  return result
}

/** Adds what was not known to what the next process reads. */
export function keepFound() {
  if (added === '') return
  try {
    mkdirSync(CACHE, { recursive: true })
    appendFileSync(path, added)
  } catch {
    // Another user's, or a full disk: the next process looks again.
  }
  added = ''
}
