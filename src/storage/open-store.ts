/** The object store of the settings. */
import { join } from 'node:path'
import type { ObjectStoreSettings } from '../../schemas/config/settings.ts'
import { fileLinks } from '../core/media/file-link.ts'
import { FolderStore } from './folder-store.ts'
import type { ObjectStore } from './store.ts'

interface StoreSettings {
  /** A bucket; null: the folder `files` of the data directory. */
  readonly objectStore: ObjectStoreSettings | null
  /** Absolute. */
  readonly dataDir: string
  /** Base of the links handed out, without a slash at its end. */
  readonly publicUrl: string
  /** Signs the links: `Database.fileLinkKey`. */
  readonly fileLinkKey: Uint8Array
}

const FILES_FOLDER = 'files'

/** Opens the store. The bucket's client is loaded only for a bucket: it takes longer than the rest of a start. */
export async function openStore(settings: StoreSettings): Promise<ObjectStore> {
  const links = fileLinks(settings.publicUrl, settings.fileLinkKey)
  if (settings.objectStore === null) return FolderStore.open(join(settings.dataDir, FILES_FOLDER), links)
  const { BucketStore } = await import('./bucket-store.ts')
  return new BucketStore(settings.objectStore, links)
}
