/** The built files of the console, read once and kept in memory: they are small, and every name has a hash. */
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'

const BUILT = new URL('../../console/dist/', import.meta.url)

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}
const COMPRESSED = '.br'

export interface ConsoleFile {
  readonly type: string
  readonly bytes: Buffer
  /** The same, compressed by brotli; null for a file that does not become smaller. */
  readonly brotli: Buffer | null
}

/** Returns the files by their path below `/console/`; empty where the console was not built. */
export function readConsole(folder: URL = BUILT): ReadonlyMap<string, ConsoleFile> {
  let names: string[]
  try {
    names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  } catch {
    return new Map()
  }
  const has = new Set(names)
  const read = (name: string): Buffer => readFileSync(new URL(name, folder))
  return new Map(
    names.flatMap((name) => {
      const type = TYPES[extname(name)]
      if (type === undefined) return []
      const brotli = has.has(name + COMPRESSED) ? read(name + COMPRESSED) : null
      return [[name, { type, bytes: read(name), brotli }] as const]
    }),
  )
}
