/** The job of an import: uploaded files as a folder, and that into the knowledge base. */
import { createWriteStream } from 'node:fs'
import { mkdir, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReportProgress, RunJob } from '../../../pipelines/jobs/run-jobs.ts'
import type {
  ImportInput,
  ImportResult,
  UploadedFile,
} from '../../../pipelines/management/knowledge/imports.ts'
import { REPORTED_ENTRIES, reportOf } from '../../../pipelines/management/knowledge/report.ts'
import { FileProblemError } from '../../markdown/problem.ts'
import { isZipName, Unpacking } from '../../markdown/unpack.ts'
import type { Wiki } from '../../postgres/knowledge/repository.ts'
import type { ObjectStore } from '../../storage/store.ts'
import { importFolder } from './import-folder.ts'

/** Problems beyond this many are left out of the report. */
const MAX_PROBLEMS = 1_000

export interface ImportJobDeps {
  readonly database: Pick<Wiki, 'pageHashes' | 'importPages' | 'announceSources' | 'reportLinks'>
  readonly store: Pick<ObjectStore, 'put' | 'get' | 'delete'>
  /** Uploads are unpacked below it. */
  readonly dataDir: string
}

export const importJob =
  (deps: ImportJobDeps): RunJob =>
  async ({ id, subjectId, input }, report) => {
    const { files, prune, maxAccountPages } = input as ImportInput
    // The same at a second attempt: what a killed one has left is removed.
    const place = join(deps.dataDir, 'imports', id)
    await rm(place, { recursive: true, force: true })
    const onEnded = () => deps.store.delete(files.map(({ key }) => key))
    try {
      const folder = await unpack(deps, files, place)
      const baseId = subjectId!
      const outcome = await importFolder(
        { wiki: deps.database, store: deps.store, onProgress: progressTo(report) },
        { baseId, folder, prune, maxAccountPages },
      )
      const links = await deps.database.reportLinks(baseId, REPORTED_ENTRIES)
      const result: ImportResult = { report: reportOf(outcome, links, prune), problems: [] }
      return { result, onEnded }
    } catch (error) {
      if (!(error instanceof FileProblemError)) throw error
      return { ...refused(error), onEnded }
    } finally {
      await rm(place, { recursive: true, force: true })
    }
  }

function refused({ problems }: FileProblemError): { error: string; result: ImportResult } {
  const count = new Set(problems.map(({ file }) => file)).size
  return {
    error: `${count === 1 ? 'A file is' : `${count} files are`} bad; nothing was changed.`,
    result: { report: null, problems: problems.slice(0, MAX_PROBLEMS) },
  }
}

/** Passes progress on; an import that is to stop stops at its next step. */
function progressTo(report: ReportProgress): (progress: { done: number; total: number }) => void {
  let stop: Error | null = null
  return ({ done, total }) => {
    if (stop !== null) throw stop
    report(done, total).catch((error) => {
      stop = error
    })
  }
}

/** Returns the folder. @throws FileProblemError */
async function unpack(
  { store }: ImportJobDeps,
  files: readonly UploadedFile[],
  place: string,
): Promise<string> {
  const folder = join(place, 'files')
  await mkdir(folder, { recursive: true })
  const unpacking = new Unpacking(await realpath(folder))
  for (const [index, { key, path }] of files.entries()) {
    const content = await opened(store, key)
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

async function opened(store: ImportJobDeps['store'], key: string): Promise<Readable> {
  const object = await store.get(key)
  if (object === null) throw new Error('The upload is gone: it is kept for a day. Upload it again')
  return object.stream
}
