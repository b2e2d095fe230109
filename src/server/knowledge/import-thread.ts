/** The thread of one import. */
import { parentPort, workerData } from 'node:worker_threads'
import type { ImportInput } from '../../../pipelines/management/knowledge/imports.ts'
import { openDatabase } from '../../postgres/database.ts'
import { openStore } from '../../storage/open-store.ts'
import type { Boot } from '../messages.ts'
import type { ImportProgress } from './import-folder.ts'
import { type Imported, importUploads } from './import-uploads.ts'

export interface ImportThreadData {
  readonly boot: ImportBoot
  readonly place: string
  readonly baseId: string
  readonly input: ImportInput
}

export type ImportBoot = Pick<
  Boot,
  'databaseUrl' | 'databasePoolUrl' | 'masterKey' | 'objectStore' | 'dataDir' | 'publicUrl'
>

export type FromImportThread = { readonly progress: ImportProgress } | { readonly imported: Imported }

/** One for the pages on their way, one for the source files. */
const MAX_CONNECTIONS = 2

const send = (message: FromImportThread): void => parentPort!.postMessage(message)

const { boot, place, baseId, input } = workerData as ImportThreadData
const database = await openDatabase({
  url: boot.databaseUrl,
  poolUrl: boot.databasePoolUrl,
  masterKey: Buffer.from(boot.masterKey, 'base64'),
  maxConnections: MAX_CONNECTIONS,
  name: 'tollgate import',
})
try {
  const store = await openStore({ ...boot, fileLinkKey: database.masterKey.fileLinkKey })
  const onProgress = (progress: ImportProgress) => send({ progress })
  send({ imported: await importUploads({ database, store, place, onProgress }, baseId, input) })
} finally {
  await database.close()
}
