/**
 * The job of an import, in a thread: pages of a large base take minutes to read and to index, in which this process
 * has tasks to do.
 */
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { ReportProgress, RunJob } from '../../../pipelines/jobs/run-jobs.ts'
import type { ImportInput } from '../../../pipelines/management/knowledge/imports.ts'
import type { ObjectStore } from '../../storage/store.ts'
import type { FromImportThread, ImportBoot, ImportThreadData } from './import-thread.ts'
import type { Imported } from './import-uploads.ts'

interface ImportJobDeps {
  readonly boot: ImportBoot
  readonly store: Pick<ObjectStore, 'delete'>
}

export const importJob =
  ({ boot, store }: ImportJobDeps): RunJob =>
  async ({ id, subjectId, input }, report) => {
    const given = input as ImportInput
    // The same at a second attempt: what a killed one has left is removed.
    const place = join(boot.dataDir, 'imports', id)
    await rm(place, { recursive: true, force: true })
    await mkdir(place, { recursive: true })
    try {
      const imported = await runInThread({ boot, place, baseId: subjectId!, input: given }, report)
      return { ...imported, onEnded: () => store.delete(given.files.map(({ key }) => key)) }
    } finally {
      await rm(place, { recursive: true, force: true })
    }
  }

/** Ends the thread where the job is to stop: PostgreSQL rolls its transaction back. */
function runInThread(data: ImportThreadData, report: ReportProgress): Promise<Imported> {
  const { promise, resolve, reject } = Promise.withResolvers<Imported>()
  const thread = new Worker(new URL('import-thread.ts', import.meta.url), { workerData: data })
  const stop = (error: Error) => {
    reject(error)
    void thread.terminate()
  }
  thread.on('message', (message: FromImportThread) => {
    if ('imported' in message) return resolve(message.imported)
    const { done, total } = message.progress
    report(done, total).catch(stop)
  })
  thread.on('error', (error: NodeJS.ErrnoException) => {
    const isTooLarge = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
    reject(isTooLarge ? new Error(TOO_LARGE, { cause: error }) : error)
  })
  thread.on('exit', () => reject(new Error('The thread of the import has ended before the import')))
  return promise
}

const TOO_LARGE =
  'The import needs more memory than the service has for it, and nothing was changed: import fewer pages at a time'
