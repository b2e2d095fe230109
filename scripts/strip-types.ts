/**
 * Writes the program without its types, which is what `npm start` runs: Node.js would strip them again at each start, and
 * keep what it does that with in the memory of every process. Only files that have changed are written. Positions in a
 * file stay as they are.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const PROGRAM = join(ROOT, 'node_modules/.cache/tollgate/program')
const SOURCES = ['schemas', 'src', 'pipelines', 'simulator']
/** What the sources find by their place in the checkout. */
const LINKED = ['package.json', 'node_modules', 'docs', 'console']
/** A module, thread or program of ours, wherever its path stands. */
const OWN_FILE = /(['"])((?:\.{1,2}\/)*[\w./-]+)\.ts\1/g
const TYPED = /\.ts$/
/** AssemblyScript. */
const LEFT_OUT = 'src/core/json/scanner/assembly/'

/** Returns the paths of the files below the folder, relative to it. */
const listFiles = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))

function link(path: string): void {
  const linked = join(PROGRAM, path)
  if (existsSync(linked)) return
  mkdirSync(dirname(linked), { recursive: true })
  rmSync(linked, { force: true })
  symlinkSync(join(ROOT, path), linked)
}

function strip(path: string): void {
  const source = join(ROOT, path)
  const target = join(PROGRAM, path.replace(TYPED, '.js'))
  const { atime, mtime } = statSync(source)
  if (existsSync(target) && statSync(target).mtimeMs === mtime.getTime()) return
  mkdirSync(dirname(target), { recursive: true })
  // In one step: another start may read it.
  const written = join(PROGRAM, `.${process.pid}`)
  writeFileSync(written, stripTypeScriptTypes(readFileSync(source, 'utf8')).replace(OWN_FILE, '$1$2.js$1'))
  utimesSync(written, atime, mtime)
  renameSync(written, target)
}

for (const path of LINKED) link(path)
for (const folder of SOURCES) {
  const paths = listFiles(join(ROOT, folder))
    .map((path) => join(folder, path))
    .filter((path) => !path.startsWith(LEFT_OUT))
  for (const path of paths) TYPED.test(path) ? strip(path) : link(path)
  const wanted = new Set(paths.map((path) => path.replace(TYPED, '.js')))
  for (const path of listFiles(join(PROGRAM, folder)).map((name) => join(folder, name)))
    if (!wanted.has(path)) rmSync(join(PROGRAM, path), { force: true })
}
