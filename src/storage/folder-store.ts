/**
 * The object store in a folder. A file is written under another name, synced and then renamed, so that it exists whole
 * or not at all, whichever process is killed. Any number of processes may share the folder.
 */
import { createHash, randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { access, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { type FileLinks, requireObjectKey } from '../core/media/file-link.ts'
import { findMediaType, UNKNOWN_MEDIA_TYPE } from '../core/media/type.ts'
import { limitBytes } from './bounded.ts'
import type { ByteRange, ObjectBody, ObjectStore, PutOptions, StoredObject } from './store.ts'

/** Unfinished files: in the same file system as their final place. */
const PARTS_FOLDER = '.parts'
/** Parts this old belong to no upload: their writer was killed. */
const STALE_PART_MS = 6 * 60 * 60 * 1000
/** Neither occurs in a key, so that no two names collide. */
const SLASH = '~'
const TYPE_SUFFIX = '=type'
/** Folders over which files are spread: of a million files each holds 4,000. */
const FAN_OUT_HEX_DIGITS = 2
const FOLDER_MODE = 0o700
const FILE_MODE = 0o600

async function catchMissing<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Syncs a folder: a new name in it outlives a power failure only after that. */
async function forceFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

export class FolderStore implements ObjectStore {
  readonly servesLinks = false
  readonly #root: string
  readonly #parts: string
  readonly #links: FileLinks

  private constructor(root: string, links: FileLinks) {
    this.#root = root
    this.#parts = join(root, PARTS_FOLDER)
    this.#links = links
  }

  /** Makes the folder where there is none, and clears away what killed uploads have left. */
  static async open(root: string, links: FileLinks, now = Date.now()): Promise<FolderStore> {
    const store = new FolderStore(root, links)
    await mkdir(store.#parts, { recursive: true, mode: FOLDER_MODE })
    for (const name of await readdir(store.#parts)) {
      const part = join(store.#parts, name)
      const found = await catchMissing(stat(part))
      if (found !== null && found.mtimeMs < now - STALE_PART_MS) await rm(part, { force: true })
    }
    return store
  }

  async put(key: string, content: Buffer | Readable, options: PutOptions): Promise<StoredObject> {
    const path = this.#toPath(key)
    const { mediaType } = options
    const isTold = findMediaType(key) !== mediaType
    const bytes = await this.#write(path, limitBytes(content, options), async () => {
      if (isTold) await this.#write(path + TYPE_SUFFIX, [Buffer.from(mediaType)])
    })
    if (!isTold) await rm(path + TYPE_SUFFIX, { force: true })
    return { bytes, mediaType }
  }

  /** Writes a file. `beforeRename` runs after all bytes are written. Resolves with the number of bytes. */
  async #write(
    path: string,
    pieces: AsyncIterable<Buffer> | Iterable<Buffer>,
    beforeRename?: () => Promise<void>,
  ): Promise<number> {
    const part = join(this.#parts, randomUUID())
    const handle = await open(part, 'wx', FILE_MODE)
    let length = 0
    try {
      try {
        for await (const piece of pieces) {
          await handle.appendFile(piece)
          length += piece.length
        }
        await handle.sync()
      } finally {
        await handle.close()
      }
      await beforeRename?.()
      await this.#rename(part, path)
    } catch (error) {
      await rm(part, { force: true })
      throw error
    }
    return length
  }

  async #rename(part: string, path: string): Promise<void> {
    const folder = dirname(path)
    if ((await mkdir(folder, { recursive: true, mode: FOLDER_MODE })) !== undefined)
      await forceFolder(this.#root)
    await rename(part, path)
    await forceFolder(folder)
  }

  async get(key: string, range?: ByteRange): Promise<ObjectBody | null> {
    const path = this.#toPath(key)
    const handle = await catchMissing(open(path, constants.O_RDONLY))
    if (handle === null) return null
    try {
      const [{ size }, mediaType] = [await handle.stat(), await this.#readMediaType(key, path)]
      const stream = handle.createReadStream(range ? { start: range.first, end: range.last } : {})
      return { bytes: size, mediaType, stream }
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  async head(key: string): Promise<StoredObject | null> {
    const path = this.#toPath(key)
    const found = await catchMissing(stat(path))
    return found && { bytes: found.size, mediaType: await this.#readMediaType(key, path) }
  }

  async #readMediaType(key: string, path: string): Promise<string> {
    const stored = await catchMissing(readFile(path + TYPE_SUFFIX, 'utf8'))
    return stored ?? findMediaType(key) ?? UNKNOWN_MEDIA_TYPE
  }

  async delete(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      const path = this.#toPath(key)
      await rm(path, { force: true })
      await rm(path + TYPE_SUFFIX, { force: true })
    }
  }

  async makeLink(key: string, expiresAt: number): Promise<string> {
    return this.#links.print(key, expiresAt)
  }

  makePermanentLink(key: string): string {
    return this.#links.print(key, null)
  }

  async ping(): Promise<void> {
    await access(this.#parts, constants.R_OK | constants.W_OK | constants.X_OK)
  }

  #toPath(key: string): string {
    const spread = createHash('sha256')
      .update(requireObjectKey(key))
      .digest('hex')
      .slice(0, FAN_OUT_HEX_DIGITS)
    return join(this.#root, spread, key.replaceAll('/', SLASH))
  }
}
