/** The object store for the task engine: fetches results into it through the guard, and reads jobs' files from it. */
import { Readable } from 'node:stream'
import {
  type CopiedObject,
  type CopyLimits,
  OtherKindOfFile,
  StoreFailure,
  type TaskStorage,
} from '../../../pipelines/tasks/ports.ts'
import { Failure } from '../../../schemas/failure.ts'
import { IMAGE_HEAD_BYTES, readImageFacts } from '../../core/media/image-size.ts'
import { peekStream } from '../../core/media/peeked.ts'
import { sniffMediaType } from '../../core/media/type.ts'
import {
  type FetchedStream,
  guardedStream,
  hideQuery,
  MAX_SIGNED_URL_CHARS,
} from '../../fetch/guarded-fetch.ts'
import type { Resolve } from '../../fetch/public-link.ts'
import type { ObjectBody, ObjectStore } from '../../storage/store.ts'
import { makeLinkChecker } from '../gateway/check-links.ts'

/** An error page with status 200 is not the file. */
const MEDIA_TYPE = /^(?:image|video|audio)\/[a-z0-9.+-]{1,64}$/

/**
 * Recognises a file by its first bytes, else by its server's media type.
 * @throws Error when it is no picture, film or sound; OtherKindOfFile
 */
async function recognize(
  url: string,
  { pieces, mediaType }: FetchedStream,
  { accepts = () => true }: Pick<CopyLimits, 'accepts'>,
) {
  const { head, all, stop } = await peekStream(pieces, IMAGE_HEAD_BYTES)
  const declared = MEDIA_TYPE.test(mediaType) && !mediaType.includes('svg') ? mediaType : null
  const type = sniffMediaType(head) ?? declared
  const isFile = type !== null && head.length > 0
  if (isFile && accepts(type)) return { type, all, size: readImageFacts(head) }
  await stop()
  if (isFile) throw new OtherKindOfFile(`The file at ${hideQuery(url)} is ${type}.`, type)
  const what = head.length === 0 ? 'empty' : 'neither a picture, a film nor a sound'
  throw new Error(`The file at ${hideQuery(url)} is ${what}.`)
}

interface TaskStorageOptions {
  readonly store: ObjectStore
  /** Replaces the rule that allows only public addresses. */
  readonly isAllowed?: (address: string) => boolean
  /** In place of the machine's resolver. */
  readonly resolve?: Resolve
}

/** An error about the file comes through the store as it is. */
const storeFailure = (error: Error): never => {
  throw error instanceof Failure ? error : new StoreFailure(error.message)
}

export function openTaskStorage({ store, isAllowed, resolve }: TaskStorageOptions): TaskStorage {
  const findFile = async (key: string): Promise<ObjectBody> => {
    const body = await store.get(key).catch(storeFailure)
    if (body === null) throw new Error(`There is no object ${key} in the store.`)
    return body
  }
  return {
    copy: (url, key, { maxBytes, timeoutMs, headers = [], ...kinds }, allowedHost, signal) =>
      guardedStream(
        url,
        {
          maxBytes,
          timeoutMs,
          maxUrlChars: MAX_SIGNED_URL_CHARS,
          allowedHost,
          headers,
          ...(isAllowed && { isAllowed }),
          ...(signal && { signal }),
        },
        async (file): Promise<CopiedObject> => {
          const { type, all, size } = await recognize(url, file, kinds)
          const content = Readable.from(all, { objectMode: false })
          const options = { mediaType: type, maxBytes, ...(signal && { signal }) }
          const { width = null, height = null } = size ?? {}
          return { ...(await store.put(key, content, options).catch(storeFailure)), width, height }
        },
      ),
    checkLinks: makeLinkChecker({ store, ...(resolve && { resolve }) }),
    put: (key, bytes, mediaType) => store.put(key, bytes, { mediaType, maxBytes: bytes.length }),
    link: (key, expiresAt) => store.makeLink(key, expiresAt),
    permanentLink: (key) => store.makePermanentLink(key),
    read: async (key, maxBytes) => {
      const { stream, bytes } = await findFile(key)
      if (bytes > maxBytes) {
        stream.destroy()
        throw new Error(`The object ${key} has ${bytes} bytes, more than ${maxBytes}.`)
      }
      return Buffer.concat(await stream.toArray().catch(storeFailure))
    },
    open: async (key) => (await findFile(key)).stream,
    delete: (keys) => store.delete(keys),
  }
}
