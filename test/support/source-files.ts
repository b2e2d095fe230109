/** The repository's own files, and what each imports, for the tests of style. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** What git ignores, what tools leave behind, and what was measured rather than written. */
const NOT_OURS = new Set([
  'built',
  'node_modules',
  '.git',
  '.tap',
  '.tollgate',
  'coverage',
  'results',
  'dist',
  'screenshots',
  'package-lock.json',
])

export interface Import {
  /** As written: `./problem.ts`, `zod`, `node:fs`. */
  readonly specifier: string
  /** Nothing of it is left when the types are stripped. */
  readonly typeOnly: boolean
}

export interface SourceFile {
  /** From the root, with `/`. */
  readonly path: string
  readonly text: string
  readonly imports: readonly Import[]
}

/** Every file under these folders (the root by default), sorted. */
export function filesUnder(...folders: readonly string[]): string[] {
  const all = folders.length === 0 ? [''] : folders
  return all.flatMap((folder) => [...walk(folder)]).sort()
}

function* walk(folder: string): Iterable<string> {
  for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
    if (NOT_OURS.has(entry.name)) continue
    const path = posix.join(folder, entry.name)
    if (entry.isDirectory()) yield* walk(path)
    else if (entry.isFile()) yield path
  }
}

export function readText(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

export function sourceFiles(...folders: readonly string[]): SourceFile[] {
  return filesUnder(...folders)
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => {
      const text = readText(path)
      return { path, text, imports: importsOf(text) }
    })
}

/** The formatter sets every statement at the start of a line, with one space between its words. */
const STATEMENT = /^(?:import|export) (type )?([^'"`;]*?)from '([^']+)'/gm
const SIDE_EFFECT = /^import '([^']+)'/gm
const DYNAMIC = /\b(?:import|resolve)\('([^'/.][^']*|\.[^']+)'\)/g

export function importsOf(text: string): Import[] {
  const code = text.replace(/^\s*(?:\/\/|\/?\*).*$/gm, '')
  return [
    ...[...code.matchAll(STATEMENT)].map(([, type, names = '', specifier = '']) => ({
      specifier,
      typeOnly: type !== undefined || onlyTypes(names),
    })),
    ...[...code.matchAll(SIDE_EFFECT), ...code.matchAll(DYNAMIC)].map(([, specifier = '']) => ({
      specifier,
      typeOnly: false,
    })),
  ]
}

/** `{ type A, type B }` */
function onlyTypes(names: string): boolean {
  const inner = /^\{(.*)\}\s*$/s.exec(names)?.[1]
  const parts =
    inner
      ?.split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '') ?? []
  return parts.length > 0 && parts.every((part) => part.startsWith('type '))
}

/** The file that a relative import names, from the root; null for a package. */
export function target(from: string, specifier: string): string | null {
  return specifier.startsWith('.') ? posix.join(dirname(from), specifier) : null
}

/** The package that an import names, without the path within it; null for a file or a built-in module. */
export function packageOf(specifier: string): string | null {
  if (specifier.startsWith('.') || specifier.startsWith('node:')) return null
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}
