/** Uploaded files as a folder, and that into the knowledge base. */

import { createWriteStream } from 'node:fs'
import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type {
  ImportInput,
  ImportResult,
  UploadedFile,
} from '../../../pipelines/management/knowledge/imports.ts'
import { makeReport, REPORTED_ENTRIES } from '../../../pipelines/management/knowledge/report.ts'
import { FileProblemError } from '../../markdown/problem.ts'
import { isZipName, Unpacking } from '../../markdown/unpack.ts'
import type { Knowledge } from '../../postgres/knowledge/repository.ts'
import type { ObjectStore } from '../../storage/store.ts'
import { type ImportProgress, importFolder } from './import-folder.ts'

/** Problems beyond this many are left out of the report. */
const MAX_PROBLEMS = 1_000

interface UploadDeps {
  readonly database: {
    readonly knowledge: Pick<Knowledge, 'readPageHashes' | 'importPages' | 'announceSources' | 'reportLinks'>
  }
  readonly store: Pick<ObjectStore, 'put' | 'get'>
  /** An empty folder of the caller, who removes it. */
  readonly place: string
  readonly onProgress: (progress: ImportProgress) => void
}

export interface Imported {
  readonly result: ImportResult
  /** Why nothing was changed. */
  readonly error?: string
}

export async function importUploads(
  { database, store, place, onProgress }: UploadDeps,
  baseId: string,
  { files, prune, maxAccountPages }: ImportInput,
): Promise<Imported> {
  try {
    const folder = await unpack(store, files, place)
    const outcome = await importFolder(
      { wiki: database.knowledge, store, onProgress },
      { baseId, folder, prune, maxAccountPages },
    )
    const links = await database.knowledge.reportLinks(baseId, REPORTED_ENTRIES)
    return { result: { report: makeReport(outcome, links, prune), problems: [] } }
  } catch (error) {
    if (!(error instanceof FileProblemError)) throw error
    return toRefused(error)
  }
}

function toRefused({ problems }: FileProblemError): Imported {
  const count = new Set(problems.map(({ file }) => file)).size
  return {
    error: `${count === 1 ? 'A file is' : `${count} files are`} bad; nothing was changed.`,
    result: { report: null, problems: problems.slice(0, MAX_PROBLEMS) },
  }
}

/** Returns the folder. @throws FileProblemError */
async function unpack(
  store: UploadDeps['store'],
  files: readonly UploadedFile[],
  place: string,
): Promise<string> {
  const folder = join(place, 'files')
  await mkdir(folder, { recursive: true })
  const unpacking = new Unpacking(await realpath(folder))
  for (const [index, { key, path }] of files.entries()) {
    const content = await openUpload(store, key)
    if (!isZipName(path)) {
      await unpacking.add(path, content)
      continue
    }
    const zip = join(place, `${index}.zip`)
    await pipeline(content, createWriteStream(zip))
    await unpacking.unzip(path, zip)
  }
  unpacking.assertClean()
  return folder
}

async function openUpload(store: UploadDeps['store'], key: string): Promise<Readable> {
  const object = await store.get(key)
  if (object === null) throw new Error('The upload is gone: it is kept for a day. Upload it again')
  return object.stream
}
