/**
 * Links that were handed out here, given back as input: the file is in the store already, and is taken from there. The
 * gateway itself may have an address from which nothing may be fetched.
 */

import type { StoredFileRef } from '../../../schemas/media/job.ts'
import { checkLink, FILES_PATH, isObjectKey } from '../../../src/core/media/file-link.ts'
import type { StoredObject } from '../../../src/storage/store.ts'
import type { AcceptedFiles } from '../inputs/store-input.ts'
import { throwUnreadable } from './unreadable.ts'

export interface OwnLinks {
  readonly files: { head(key: string): Promise<StoredObject | null> }
  /** Signs the links: see `linkKey`. */
  readonly fileLinkKey: Uint8Array
}

/** Null for any other link, and for an expired one. A link is enough to read its file. */
export async function findOwnFile(
  { files, fileLinkKey }: OwnLinks,
  link: string,
  accepted: AcceptedFiles,
): Promise<StoredFileRef | null> {
  const { pathname, searchParams } = new URL(link)
  const key = pathname.slice(FILES_PATH.length)
  const isOurs = pathname.startsWith(FILES_PATH) && isObjectKey(key)
  if (!isOurs || checkLink(fileLinkKey, key, searchParams, Date.now()) !== 'valid') return null
  const found = await files.head(key).catch(throwUnreadable)
  if (found === null || !accepted.mediaTypes.includes(found.mediaType)) return null
  const { bytes, mediaType } = found
  return { from: 'store', key, media_type: mediaType, bytes, name: key.slice(key.lastIndexOf('/') + 1) }
}
