/** Which pages a folder has. */
import type { Dirent } from 'node:fs'
import { readdir, realpath, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { normalizeText } from '../core/normalize-text.ts'
import { isPageName } from './page.ts'
import type { FileProblem } from './problem.ts'

/** In the database a path is part of an index, whose entries are short. */
const PATH_MAX_BYTES = 1_000
const HIDDEN = '.'

export interface PageFile {
  /** Below the folder, with `/`, in Unicode's composed form: the same on every file system. */
  readonly path: string
  /** Path to read it from. */
  readonly file: string
}

interface FolderPages {
  /** In the order of their paths. */
  readonly files: readonly PageFile[]
  readonly problems: readonly FileProblem[]
}

/** Returns true for the folder itself and paths below it; both without links in them. */
export const isWithin = (root: string, file: string): boolean =>
  file === root || file.startsWith(root.endsWith(sep) ? root : root + sep)

/**
 * Returns the pages of a folder, without hidden files and folders.
 * @throws Error when there is no such folder
 */
export async function readFolder(folder: string): Promise<FolderPages> {
  const root = await realpath(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    throw new Error(`There is no folder ${folder}`)
  })
  if (!(await stat(root)).isDirectory()) throw new Error(`${folder} is not a folder`)
  const walk = new Walk(root)
  await walk.enter(root, '')
  return walk.listFound()
}

class Walk {
  readonly #root: string
  readonly #files = new Map<string, string>()
  readonly #problems: FileProblem[] = []

  constructor(root: string) {
    this.#root = root
  }

  listFound(): FolderPages {
    const files = [...this.#files].map(([path, file]) => ({ path, file }))
    return { files: files.sort((a, b) => (a.path < b.path ? -1 : 1)), problems: this.#problems }
  }

  async enter(folder: string, prefix: string): Promise<void> {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      if (entry.name.startsWith(HIDDEN)) continue
      const path = `${prefix}${entry.name}`
      const file = join(folder, entry.name)
      if (entry.isSymbolicLink()) await this.#follow(entry, path, file)
      else if (entry.isDirectory()) await this.enter(file, `${path}/`)
      else if (entry.isFile() && isPageName(entry.name)) this.#add(path, file)
    }
  }

  /** Follows a link. One to a folder of the same folder adds no pages. */
  async #follow({ name }: Dirent, path: string, link: string): Promise<void> {
    const file = await realpath(link).catch(() => null)
    if (file === null) {
      if (isPageName(name))
        this.#addProblem(path, 'This link leads nowhere. Take it away, or put the file there.')
      return
    }
    const found = await stat(file)
    const isPage = found.isFile() && isPageName(name)
    if (isPage && isWithin(this.#root, file)) this.#add(path, file)
    else if ((isPage || found.isDirectory()) && !isWithin(this.#root, file))
      this.#addProblem(
        path,
        'This link leads out of the folder. Put what it leads to into the folder itself.',
      )
  }

  #add(path: string, file: string): void {
    const name = normalizeText(path, 'NFC')
    if (Buffer.byteLength(name) > PATH_MAX_BYTES)
      this.#addProblem(path, `Its path has more than ${PATH_MAX_BYTES} bytes. Shorten it.`)
    else if (this.#files.has(name))
      this.#addProblem(
        path,
        'Another file has the same name in other characters that look alike. Rename one.',
      )
    else this.#files.set(name, file)
  }

  #addProblem(file: string, message: string): void {
    this.#problems.push({ file, line: 1, message })
  }
}
