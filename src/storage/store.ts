/**
 * The object store: files that were taken in or produced. A bucket where one is configured, else a folder of the data
 * directory. See docs/api-rules.md, "Files and link lifetimes".
 */
import type { Readable } from 'node:stream'

/** As far ahead as a link may be good; the field's pre-signed links have the same bound. */
export const MAX_LINK_MS = 7 * 24 * 60 * 60 * 1000

export interface StoredObject {
  readonly bytes: number
  readonly mediaType: string
}

export interface ObjectBody extends StoredObject {
  /** Of the requested range; `bytes` counts the whole object. Read it to its end, or destroy it. */
  readonly stream: Readable
}

export interface ByteRange {
  /** The first byte, and the last one, both included. */
  readonly first: number
  readonly last: number
}

export interface PutOptions {
  readonly mediaType: string
  /** A longer upload is aborted: none of it remains. */
  readonly maxBytes: number
  readonly signal?: AbortSignal
}

export interface FileLinks {
  /** Returns a link that is valid until the instant (epoch milliseconds), at most seven days ahead. */
  makeLink(key: string, expiresAt: number): Promise<string>
}

export interface LastingLinks {
  /** Returns a link that is valid as long as the object exists. */
  makePermanentLink(key: string): string
}

export interface FileReader {
  /** Returns the object; null without one. */
  get(key: string, range?: ByteRange): Promise<ObjectBody | null>
}

export interface FileWriter {
  /**
   * Stores the object whole or not at all.
   * @throws ObjectTooLarge
   */
  put(key: string, content: Buffer | Readable, options: PutOptions): Promise<StoredObject>
}

export interface FileRemover {
  /** Deletes objects. A missing one counts as deleted. */
  delete(keys: readonly string[]): Promise<void>
}

/** Keys are `<folder>/<name>`: letters, digits, `-`, `_`, `.` and `/`, at most 200 characters, no `..`. */
export interface ObjectStore extends FileLinks, LastingLinks, FileReader, FileWriter, FileRemover {
  /** Its links lead to the bucket, which sends the files; else to the gateway, which does. */
  readonly servesLinks: boolean
  head(key: string): Promise<StoredObject | null>
  /** Throws when the store does not answer. */
  ping(): Promise<void>
}

export class ObjectTooLarge extends Error {
  override readonly name = 'ObjectTooLarge'
}
