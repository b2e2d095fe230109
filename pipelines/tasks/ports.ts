/** What the task engine needs of the outside: the object store, and calls to an upstream. `src/main.ts` and tests bring them. */
import type { Readable } from 'node:stream'
import type { HeaderFields } from '../../src/channels/channel.ts'
import type { MediaAnswer, MediaRequest, TaskAdapter } from '../../src/channels/media/adapter.ts'
import type { StoredObject } from '../../src/storage/store.ts'
import { noAnswer } from '../calls/upstream-error.ts'

export interface CopyLimits {
  readonly maxBytes: number
  readonly timeoutMs: number
  /** Sent only to the allowed host. */
  readonly headers?: HeaderFields
  /** Returns false for the type of a file that is not to be stored. Default: every picture, film and sound is. */
  readonly accepts?: (mediaType: string) => boolean
}

/** A file is none of what `accepts` allows. */
export class OtherKindOfFile extends Error {
  override readonly name = 'OtherKindOfFile'
  readonly mediaType: string

  constructor(message: string, mediaType: string) {
    super(message)
    this.mediaType = mediaType
  }
}

/** A file that was fetched. Of a picture its size in pixels, as far as its first bytes show. */
export interface CopiedObject extends StoredObject {
  readonly width: number | null
  readonly height: number | null
}

/** Keys are those of `ObjectStore`. */
export interface TaskStorage {
  /**
   * Fetches what the URL names into the store, in one try. The address is guarded: a public one, or the host
   * `allowedHost` (name and port, as in a URL) wherever that is. @throws Error about the file, in words for the client;
   *   OtherKindOfFile; StoreFailure
   */
  copy(
    url: string,
    key: string,
    limits: CopyLimits,
    allowedHost: string | null,
    signal?: AbortSignal,
  ): Promise<CopiedObject>
  /**
   * Checks links of a client that an upstream is to fetch: each leads to a public address, or to this store.
   * @throws Error in words for the client
   */
  checkLinks(urls: readonly string[]): Promise<void>
  put(key: string, bytes: Buffer, mediaType: string): Promise<StoredObject>
  /** A link that opens until the instant (epoch milliseconds). */
  link(key: string, expiresAt: number): Promise<string>
  permanentLink(key: string): string
  /** The whole object. @throws Error when it is not there, or is larger; StoreFailure */
  read(key: string, maxBytes: number): Promise<Buffer>
  /** The object as it is read, never held whole. @throws Error when it is not there */
  open(key: string): Promise<Readable>
  /** What is not there is deleted already. */
  delete(keys: readonly string[]): Promise<void>
}

/** The store does not answer, or has no room. The message is for the operator's log. */
export class StoreFailure extends Error {
  override readonly name = 'StoreFailure'
}

export interface MediaSendOptions {
  /** From now until the whole answer is there. */
  readonly timeoutMs: number
  readonly maxAnswerBytes: number
  readonly signal?: AbortSignal
}

/** Four large images in base64 are the largest answer there is. */
export const MAX_ANSWER_BYTES = 128 * 1024 * 1024

export interface MediaCalls {
  /** The whole answer, whatever its status. @throws MediaCallFailure */
  send(request: MediaRequest, options: MediaSendOptions): Promise<MediaAnswer>
  /** The headers of a request, with the token of its channel where it has one. @throws MediaCallFailure */
  makeHeaders(request: MediaRequest): Promise<HeaderFields>
}

/** A call that brought no whole answer. */
export class MediaCallFailure extends Error {
  /** Any byte of the request has gone out: the upstream may have acted on it. */
  readonly isSent: boolean
  /** The time given was over. */
  readonly isTimeout: boolean

  constructor(message: string, facts: { isSent: boolean; isTimeout: boolean }) {
    super(message)
    this.name = 'MediaCallFailure'
    this.isSent = facts.isSent
    this.isTimeout = facts.isTimeout
  }
}

/** Throws the client's error for a call of the gateway that brought no answer. */
export function throwUnanswered(error: unknown): never {
  throw error instanceof MediaCallFailure ? noAnswer(error.isTimeout, error.message) : error
}

/** The adapter that speaks a channel's protocol; null where it is none of media. */
export type FindAdapter = (protocol: string) => TaskAdapter | null
