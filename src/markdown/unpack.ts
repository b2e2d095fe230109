/** An upload as a folder: its files, and in place of a zip the files in it. */
import { createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { crc32 } from 'node:zlib'
import yauzl from 'yauzl'
import { type FileProblem, FileProblemError } from './problem.ts'

const MIB = 1024 * 1024
const FOLDER = '/'
const NUL = '\0'
/** macOS adds copies of what it knows about each file. */
const OF_MACOS = '__MACOSX/'

interface UnpackLimits {
  readonly maxBytes: number
  readonly maxFiles: number
}

/** Of one upload, unpacked. */
const LIMITS: UnpackLimits = { maxBytes: 1024 * MIB, maxFiles: 50_000 }

export const isZipName = (path: string): boolean => /\.zip$/i.test(path)

/** A fault of an upload as a whole, or of one file in it. */
class Bad extends Error {}

export class Unpacking {
  readonly problems: FileProblem[] = []
  readonly #folder: string
  readonly #limits: UnpackLimits
  #bytes = 0
  #files = 0

  /** @param folder exists, empty, with no links in its path */
  constructor(folder: string, limits: UnpackLimits = LIMITS) {
    this.#folder = folder
    this.#limits = limits
  }

  /** Adds a file. @param path as the client names it */
  async add(path: string, content: Readable): Promise<void> {
    await this.#runReporting(path, () => this.#write(path, content))
  }

  /** Adds the files of a zip. The folder that all of them are in counts as the top. */
  async unzip(name: string, file: string): Promise<void> {
    await this.#runReporting(name, async () => {
      const paths: string[] = []
      for await (const { fileName } of (await yauzl.openPromise(file)).eachEntry())
        if (isFile(fileName)) paths.push(fileName)
      const top = findCommonFolder(paths)
      const zip = await yauzl.openPromise(file)
      for await (const entry of zip.eachEntry()) {
        const { fileName } = entry
        if (!isFile(fileName)) continue
        await this.#runReporting(fileName, async () => {
          if (entry.isEncrypted()) throw new Bad('It is encrypted. Upload it without a password.')
          await this.#write(fileName.slice(top.length), await zip.openReadStreamPromise(entry), entry.crc32)
        })
      }
    })
  }

  /** @throws FileProblemError with every problem so far */
  assertClean(): void {
    if (this.problems.length > 0) throw new FileProblemError(this.problems)
  }

  async #runReporting(file: string, work: () => Promise<void>): Promise<void> {
    if (this.#files > this.#limits.maxFiles || this.#bytes > this.#limits.maxBytes) return
    try {
      await work()
    } catch (error) {
      this.problems.push({ file, line: 1, message: describeError(error as NodeJS.ErrnoException) })
    }
  }

  /** @param checksum of a file in a zip */
  async #write(path: string, content: Readable, checksum: number | null = null): Promise<void> {
    const { maxBytes, maxFiles } = this.#limits
    const refusal = yauzl.validateFileName(path)
    try {
      if (refusal !== null || path === '' || path.endsWith(FOLDER))
        throw new Bad(
          `Its path ${JSON.stringify(path)} leads out of the folder, or names no file. Rename it.`,
        )
      // The file system's own refusal names the folder on this machine.
      if (path.includes(NUL)) throw new Bad('Its path has a NUL in it. Rename it.')
      if (++this.#files > maxFiles)
        throw new Bad(`There are more than ${maxFiles} files. Import them in parts.`)
      const file = join(this.#folder, path)
      await mkdir(dirname(file), { recursive: true })
      let sum = 0
      const count = (piece: Buffer) => {
        sum = crc32(piece, sum)
        this.#bytes += piece.length
        if (this.#bytes > maxBytes)
          throw new Bad(`The files have more than ${maxBytes / MIB} MiB together. Import them in parts.`)
      }
      await pipeline(
        content,
        (pieces) => countPieces(pieces, count),
        createWriteStream(file, { flags: 'wx' }),
      )
      if (checksum !== null && sum !== checksum)
        throw new Bad('It is damaged: its checksum is another. Make the zip again.')
    } finally {
      content.destroy()
    }
  }
}

const TAKEN = 'Another file or folder of the upload has the same path. Rename one.'
/** Errors of the file system about a path, in words. */
const REFUSED_PATHS: Readonly<Record<string, string>> = {
  EEXIST: TAKEN,
  ENOTDIR: TAKEN,
  ENAMETOOLONG: 'A name in its path is too long. Shorten it.',
}

/** Returns what is wrong, without the path on this machine that an error of the file system names. */
function describeError(error: NodeJS.ErrnoException): string {
  if (error instanceof Bad) return error.message
  if (error.syscall === undefined) return `It cannot be unpacked: ${error.message.replace(/\.$/, '')}.`
  return REFUSED_PATHS[error.code ?? ''] ?? `It cannot be written (${error.code}).`
}

const isFile = (name: string): boolean => !name.endsWith(FOLDER) && !name.startsWith(OF_MACOS)

async function* countPieces(pieces: AsyncIterable<Buffer>, count: (piece: Buffer) => void) {
  for await (const piece of pieces) {
    count(piece)
    yield piece
  }
}

/** Returns `handbook/` where every path begins so, else the empty string. */
function findCommonFolder([first = '', ...rest]: readonly string[]): string {
  const folder = first.slice(0, first.indexOf(FOLDER) + 1)
  return folder !== '' && rest.every((path) => path.startsWith(folder)) ? folder : ''
}
