/** The files that pages were made from. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { basename, dirname, extname, isAbsolute, join } from 'node:path'
import { normalizeText } from '../core/normalize-text.ts'
import type { SourceField } from './fields.ts'
import { isWithin, type PageFile } from './folder.ts'
import { fileProblemError } from './problem.ts'

export const SOURCE_MAX_BYTES = 200 * 1024 * 1024
const SAFE_NAME_MAX_CHARS = 80
const UNSAFE = /[^A-Za-z0-9._-]+/g

export interface SourceFile {
  /** Path to read it from. */
  readonly file: string
  /** SHA-256 of its content. */
  readonly hash: Buffer
}

/** Finds and hashes sources of one folder; each file is read once, however many pages name it. */
export class SourceFiles {
  readonly #root: string
  readonly #hashes = new Map<string, Promise<Buffer>>()

  /** @param root has no links in it */
  constructor(root: string) {
    this.#root = root
  }

  /**
   * Finds the file next to the page, else from the top of the folder.
   * @throws FileProblemError
   */
  async find({ path, file: pageFile }: PageFile, source: SourceField): Promise<SourceFile> {
    const { filename, line } = source
    const bad = (message: string) => fileProblemError(path, line, `source: ${filename} ${message}`)
    if (isAbsolute(filename))
      throw bad('is a path from the root of the disk. Name it from the page, or from the folder.')
    const places = [join(dirname(pageFile), filename), join(this.#root, filename)]
    const found = await Promise.all(places.map((place) => realpath(place).catch(() => null)))
    const file = found.find((place) => place !== null && isWithin(this.#root, place))
    if (file === undefined || file === null) {
      if (found.some((place) => place !== null))
        throw bad('is outside of the folder. Put it into the folder.')
      throw bad('is not there. Put it into the folder, or take the source out of the page.')
    }
    const { size, isFile } = await stat(file).then((at) => ({ size: at.size, isFile: at.isFile() }))
    if (!isFile) throw bad('is not a file.')
    if (size > SOURCE_MAX_BYTES) throw bad(`has ${size} bytes, and may have ${SOURCE_MAX_BYTES}.`)
    return { file, hash: await this.#hash(file) }
  }

  #hash(file: string): Promise<Buffer> {
    const known = this.#hashes.get(file) ?? hashFile(file)
    this.#hashes.set(file, known)
    return known
  }
}

async function hashFile(file: string): Promise<Buffer> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(file)) hash.update(piece)
  return hash.digest()
}

/** Returns `sources/<base id>/<sha256>-<name>`: the same content under the same name is the same object. */
export function makeSourceKey(baseId: string, { file, hash }: SourceFile): string {
  const extension = extname(file).replace(UNSAFE, '').slice(0, SAFE_NAME_MAX_CHARS)
  const name = normalizeText(basename(file, extname(file)), 'NFKD').replace(UNSAFE, '-')
  const safe = name.slice(0, SAFE_NAME_MAX_CHARS - extension.length) + extension
  return `sources/${baseId}/${hash.toString('hex')}-${safe}`
}
