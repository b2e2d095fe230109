/** A folder of Markdown files into a knowledge base: only what has changed, all or nothing. */

import { createReadStream } from 'node:fs'
import { readFile, realpath, stat } from 'node:fs/promises'
import type { PageSource } from '../../../schemas/knowledge/wiki.ts'
import { findMediaType, UNKNOWN_MEDIA_TYPE } from '../../core/media/type.ts'
import type { SourceField } from '../../markdown/fields.ts'
import { type PageFile, readFolder } from '../../markdown/folder.ts'
import { hashPage, readNamedSource, readPage } from '../../markdown/page.ts'
import { type FileProblem, FileProblemError, fileProblemError } from '../../markdown/problem.ts'
import { makeSourceKey, SOURCE_MAX_BYTES, type SourceFile, SourceFiles } from '../../markdown/source-file.ts'
import { PAGE_MAX_BYTES, tooLarge } from '../../markdown/text.ts'
import type { Knowledge } from '../../postgres/knowledge/repository.ts'
import type { FolderImport, ImportOutcome, PageDraft } from '../../postgres/knowledge/types.ts'
import type { ObjectStore } from '../../storage/store.ts'

/** Files that are open at the same time. */
const READ_AT_ONCE = 32
/** Pages that are read and not stored yet, in memory. */
const BATCH_PAGES = 500
const BATCH_CHARS = 4_000_000

const SOURCE_MEDIA_TYPES: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  txt: 'text/plain; charset=utf-8',
  md: 'text/plain; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
}

export interface ImportProgress {
  readonly step: 'reading' | 'storing'
  readonly done: number
  readonly total: number
}

export interface ImportDeps {
  readonly wiki: Pick<Knowledge, 'readPageHashes' | 'importPages' | 'announceSources'>
  readonly store: Pick<ObjectStore, 'put'>
  onProgress?(progress: ImportProgress): void
}

export interface FolderOutcome extends ImportOutcome {
  /** Fields of front matter that mean nothing here, and in how many of the new and changed pages they are. */
  readonly ignoredFields: ReadonlyMap<string, number>
}

export interface FolderToImport
  extends Pick<FolderImport, 'baseId' | 'ownerId' | 'prune' | 'maxAccountPages'> {
  readonly folder: string
}

/** @throws FileProblemError with every problem of every file; nothing has changed then */
export async function importFolder(
  deps: ImportDeps,
  { baseId, ownerId, folder, prune, maxAccountPages }: FolderToImport,
): Promise<FolderOutcome> {
  const { files, problems } = await readFolder(folder)
  // With `prune` a folder that was named by mistake would empty the base.
  if (files.length === 0 && problems.length === 0)
    throw new Error('There is no Markdown file (.md or .markdown) in the folder; nothing was changed')
  const known = await deps.wiki.readPageHashes(baseId)
  const reader = new FolderReader(deps, baseId, await realpath(folder), known, problems)
  const outcome = await deps.wiki.importPages({
    baseId,
    ownerId,
    drafts: reader.readDrafts(files),
    present: reader.present,
    prune,
    ...(maxAccountPages !== undefined && { maxAccountPages }),
    onStored: (done, total) => deps.onProgress?.({ step: 'storing', done, total }),
  })
  return { ...outcome, ignoredFields: reader.ignoredFields }
}

class FolderReader {
  readonly present = new Map<string, Buffer>()
  readonly ignoredFields = new Map<string, number>()
  readonly #deps: ImportDeps
  readonly #baseId: string
  readonly #sources: SourceFiles
  readonly #known: ReadonlyMap<string, Buffer>
  readonly #problems: FileProblem[]
  /** In the object store since this import began. */
  readonly #stored = new Set<string>()

  constructor(
    deps: ImportDeps,
    baseId: string,
    root: string,
    known: ReadonlyMap<string, Buffer>,
    problems: readonly FileProblem[],
  ) {
    this.#deps = deps
    this.#baseId = baseId
    this.#sources = new SourceFiles(root)
    this.#known = known
    this.#problems = [...problems]
  }

  /** Yields the drafts. After the first problem, files are read only for their problems. */
  async *readDrafts(files: readonly PageFile[]): AsyncGenerator<readonly PageDraft[]> {
    let batch: PageDraft[] = []
    let chars = 0
    for (let from = 0; from < files.length; from += READ_AT_ONCE) {
      const some = await Promise.all(files.slice(from, from + READ_AT_ONCE).map((file) => this.#read(file)))
      for (const draft of some) {
        if (draft === null || this.#problems.length > 0) continue
        batch.push(draft)
        chars += draft.body.length + draft.text.length
      }
      this.#deps.onProgress?.({
        step: 'reading',
        done: Math.min(from + READ_AT_ONCE, files.length),
        total: files.length,
      })
      if (batch.length < BATCH_PAGES && chars < BATCH_CHARS) continue
      yield batch
      batch = []
      chars = 0
    }
    if (this.#problems.length > 0) throw new FileProblemError(this.#problems.sort(comparePlaces))
    yield batch
  }

  /** Reads a page; returns null for an unchanged file, and for one that is no page. */
  async #read(file: PageFile): Promise<PageDraft | null> {
    try {
      const bytes = await readBytes(file)
      const named = readNamedSource(bytes, file.path)
      const source = named && (await this.#sources.find(file, named))
      const hash = hashPage(bytes, source?.hash ?? null)
      this.present.set(file.path, hash)
      if (this.#known.get(file.path)?.equals(hash)) return null
      const page = readPage(bytes, file.path)
      for (const name of page.ignored) this.ignoredFields.set(name, (this.ignoredFields.get(name) ?? 0) + 1)
      const stored = named && source && (await this.#store(named, source))
      return { ...page, path: file.path, hash, source: stored }
    } catch (error) {
      if (!(error instanceof FileProblemError)) throw error
      this.#problems.push(...error.problems)
      return null
    }
  }

  async #store(named: SourceField, source: SourceFile): Promise<PageSource> {
    const key = makeSourceKey(this.#baseId, source)
    if (!this.#stored.has(key) && this.#problems.length === 0) {
      this.#stored.add(key)
      await this.#deps.wiki.announceSources([key])
      const mediaType = findMediaType(key) ?? SOURCE_MEDIA_TYPES[readExtension(key)] ?? UNKNOWN_MEDIA_TYPE
      await this.#deps.store.put(key, createReadStream(source.file), {
        mediaType,
        maxBytes: SOURCE_MAX_BYTES,
      })
    }
    const { filename, locator, compiledAt: compiled_at, model } = named
    return { r2_key: key, filename, locator, compiled_at, model }
  }
}

const comparePlaces = (a: FileProblem, b: FileProblem): number =>
  a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1

const readExtension = (name: string): string => name.slice(name.lastIndexOf('.') + 1).toLowerCase()

async function readBytes({ path, file }: PageFile): Promise<Buffer> {
  try {
    const { size } = await stat(file)
    if (size > PAGE_MAX_BYTES) throw tooLarge(path, size)
    return await readFile(file)
  } catch (error) {
    if (error instanceof FileProblemError) throw error
    const { code = 'unknown' } = error as NodeJS.ErrnoException
    throw fileProblemError(path, 1, `The file cannot be read (${code}). Let this user read it.`)
  }
}
