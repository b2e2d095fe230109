/** What the task engine needs from outside: the object store, and calls to upstreams. */
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
  /** Returns whether a file of this type is stored. Default: all images, videos and audio are. */
  readonly accepts?: (mediaType: string) => boolean
}

/** The file has a type that `accepts` does not allow. */
export class OtherKindOfFile extends Error {
  override readonly name = 'OtherKindOfFile'
  readonly mediaType: string

  constructor(message: string, mediaType: string) {
    super(message)
    this.mediaType = mediaType
  }
}

/** A fetched file, with the size in pixels of an image if its first bytes have it. */
export interface CopiedObject extends StoredObject {
  readonly width: number | null
  readonly height: number | null
}

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
  /** Returns a link that works until the instant (epoch milliseconds). */
  link(key: string, expiresAt: number): Promise<string>
  permanentLink(key: string): string
  /** Returns the whole object. @throws Error if it is missing or larger; StoreFailure */
  read(key: string, maxBytes: number): Promise<Buffer>
  /** Streams the object. @throws Error if it is missing */
  open(key: string): Promise<Readable>
  /** Deletes objects; missing ones count as deleted. */
  delete(keys: readonly string[]): Promise<void>
}

/** The store does not answer or is full. The message is for the operator's log. */
export class StoreFailure extends Error {
  override readonly name = 'StoreFailure'
}

export interface MediaSendOptions {
  /** The time until the whole answer has arrived. */
  readonly timeoutMs: number
  readonly maxAnswerBytes: number
  readonly signal?: AbortSignal
}

/** The largest answers are four large images in base64. */
export const MAX_ANSWER_BYTES = 128 * 1024 * 1024

export interface MediaCalls {
  /** Returns the whole answer, whatever its status. @throws MediaCallFailure */
  send(request: MediaRequest, options: MediaSendOptions): Promise<MediaAnswer>
  /** Returns the headers of a request, with the channel's token if it has one. @throws MediaCallFailure */
  makeHeaders(request: MediaRequest): Promise<HeaderFields>
}

/** A call that brought no whole answer. */
export class MediaCallFailure extends Error {
  /** True if any byte was sent: the upstream may have acted on it. */
  readonly isSent: boolean
  /** True if the time ran out. */
  readonly isTimeout: boolean

  constructor(message: string, facts: { isSent: boolean; isTimeout: boolean }) {
    super(message)
    this.name = 'MediaCallFailure'
    this.isSent = facts.isSent
    this.isTimeout = facts.isTimeout
  }
}

/** Throws the client's error for a call that got no answer. */
export function throwUnanswered(error: unknown): never {
  throw error instanceof MediaCallFailure ? noAnswer(error.isTimeout, error.message) : error
}

/** Finds the adapter of a channel's protocol; null if the protocol has no media. */
export type FindAdapter = (protocol: string) => TaskAdapter | null
