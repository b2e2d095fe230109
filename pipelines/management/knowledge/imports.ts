/** Operations of imports into a knowledge base. The task worker runs them. */

import { Readable } from 'node:stream'
import { COLLECTION_LIMITS } from '../../../schemas/collection-limits.ts'
import { Failure } from '../../../schemas/failure.ts'
import { DEFAULT_KB_ID } from '../../../schemas/knowledge/wiki.ts'
import * as operations from '../../../schemas/management/knowledge/imports.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import type { Database } from '../../../src/postgres/database.ts'
import type { Job } from '../../../src/postgres/operation/jobs.ts'
import type { ObjectStore } from '../../../src/storage/store.ts'
import { toStoreFailure } from '../../media/inputs/store-input.ts'
import type { Upload, Uploads } from '../../media/inputs/uploads.ts'
import { jobProgressShape } from '../jobs/jobs.ts'
import { type Context, implementWith } from '../operation.ts'
import { readPage, toPage } from '../page.ts'
import { findBaseAccount } from './bases.ts'

/** An import that has not begun within this time finds its files gone. */
const UPLOAD_LIFETIME_MS = 24 * 60 * 60 * 1000
const MAX_FORM_FIELD_BYTES = 1_024
const MAX_FORM_FIELDS = 8
const BYTES_PER_MIB = 1024 * 1024

/** A file that was uploaded for an import. */
export interface UploadedFile {
  /** In the object store. */
  readonly key: string
  /** As the client names it, with its folders. */
  readonly path: string
}

/** The input of the job. */
export interface ImportInput {
  readonly prune: boolean
  readonly files: readonly UploadedFile[]
  /** Null: no limit. */
  readonly maxAccountPages: number | null
}

/** Its result. */
export interface ImportResult {
  readonly report: operations.ImportReport | null
  readonly problems: readonly operations.ImportProblem[]
}

export interface ImportServices {
  readonly files: ObjectStore
  readonly uploads: Uploads
}

const toShape = (job: Job) => {
  const { report, problems } = (job.result as ImportResult | null) ?? { report: null, problems: [] }
  return {
    ...jobProgressShape(job),
    knowledge_base_id: job.subjectId!,
    files: (job.input as ImportInput).files.map(({ path }) => path),
    report,
    problems,
  }
}

async function* countBytes(content: AsyncIterable<Buffer>, upload: Upload) {
  for await (const piece of content) {
    upload.count(piece.length)
    yield piece
  }
}

const tooLarge = (path: string): Failure =>
  new Failure(
    'request_too_large',
    `${path} is larger than ${operations.MAX_UPLOAD_BYTES / BYTES_PER_MIB} MiB.`,
  )

/** Stores the files of the form. Those of a form that is cut are removed again. */
async function storeFiles(
  { visit, database, now }: Context,
  files: ObjectStore,
  upload: Upload,
): Promise<UploadedFile[]> {
  if (visit.form === null)
    throw new Failure('invalid_request', 'The body is not a multipart form: send a zip, or files, as a form.')
  const name = newId('job')
  const stored: UploadedFile[] = []
  let number = 0
  await visit.form.read(
    {
      maxFields: MAX_FORM_FIELDS,
      maxFieldBytes: MAX_FORM_FIELD_BYTES,
      maxFiles: operations.MAX_UPLOAD_FILES,
      keepsFolders: true,
    },
    async ({ name: path, content }) => {
      const at = number++
      const key = `imports/${name}-${at}`
      const put = async () => {
        await database.tasks.recordObjects([{ key, expiresAt: now + UPLOAD_LIFETIME_MS }])
        return files.put(key, Readable.from(countBytes(content, upload), { objectMode: false }), {
          mediaType: 'application/octet-stream',
          maxBytes: operations.MAX_UPLOAD_BYTES,
        })
      }
      await put().catch((error: Error) => {
        throw toStoreFailure(error, tooLarge(path))
      })
      await upload.noteStored(key)
      stored[at] = { key, path }
    },
  )
  if (stored.length === 0) throw new Failure('invalid_request', 'The form brings no file.')
  return stored
}

/** @throws Failure `not_found`: there is none of that base */
async function findImport(
  database: Database,
  { id, import_id: importId }: { readonly id: string; readonly import_id: string },
): Promise<Job> {
  const job = await database.jobs.read(importId).catch((error: { code?: string }) => {
    if (error.code === 'job_not_found') return null
    throw error
  })
  if (job?.subjectId !== id) throw new Failure('not_found', `There is no import ${importId} of ${id}.`)
  return job
}

const implement = implementWith<ImportServices>()

export const importOperations = [
  implement(
    operations.startImport,
    async (database, { id, account_id: accountId = null }) =>
      id === DEFAULT_KB_ID ? accountId : findBaseAccount(database, { id }),
    async (context, { id, account_id: given, prune }, { files: store, uploads }) => {
      const { caller, database, write } = context
      const isOwn = id === DEFAULT_KB_ID
      const accountId = isOwn ? given! : await findBaseAccount(database, { id })
      const upload = uploads.begin(accountId)
      try {
        const files = await storeFiles(context, store, upload)
        const job = await write(async (writing) => {
          const subjectId = isOwn ? (await writing.knowledge.defaultBase(accountId)).id : id
          const maxAccountPages =
            caller.installation === 'operator' ? null : COLLECTION_LIMITS.pages_per_account
          const input: ImportInput = { prune, files, maxAccountPages }
          return writing.jobs.start({ kind: 'import', accountId, subjectId, input })
        })
        upload.handOver()
        return toShape(job)
      } finally {
        await upload.end()
      }
    },
  ),
  implement(operations.listImports, findBaseAccount, async ({ database }, { id, ...input }) => {
    const found = await database.jobs.list({ kinds: ['import'], subjectId: id, ...readPage(input) })
    return toPage(found.map(toShape), input)
  }),
  implement(operations.showImport, findBaseAccount, async ({ database }, input) =>
    toShape(await findImport(database, input)),
  ),
  implement(operations.cancelImport, findBaseAccount, async ({ database, write }, input) => {
    const { id } = await findImport(database, input)
    return toShape(await write((writing) => writing.jobs.cancel(id)))
  }),
]
