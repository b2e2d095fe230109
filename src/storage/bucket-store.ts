/**
 * The object store in an S3-compatible bucket. A long stream is uploaded in parts, of which a few are in memory at a
 * time; an interrupted upload is aborted there too, so that none of its parts remain.
 */
import { Readable } from 'node:stream'
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import type { ObjectStoreSettings } from '../../schemas/config/settings.ts'
import { type FileLinks, requireObjectKey } from '../core/media/file-link.ts'
import { UNKNOWN_MEDIA_TYPE } from '../core/media/type.ts'
import { limitBytes } from './bounded.ts'
import {
  type ByteRange,
  MAX_LINK_MS,
  type ObjectBody,
  type ObjectStore,
  ObjectTooLarge,
  type PutOptions,
  type StoredObject,
} from './store.ts'

/** The bounds of one stream's memory: so much, twice. No part but the last may be under 5 MiB. */
const PART_BYTES = 5 * 1024 * 1024
const PARTS_AT_ONCE = 2
const DELETES_AT_ONCE = 8
const CONNECT_TIMEOUT_MS = 5_000
/** Silence of the bucket in the middle of a request. */
const IDLE_TIMEOUT_MS = 30_000
const ATTEMPTS = 3
const MS_PER_SECOND = 1000

const readStatus = (error: unknown): number | undefined =>
  (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode

async function catchMissing<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found
  } catch (error) {
    if (readStatus(error) === 404) return null
    throw error
  }
}

export class BucketStore implements ObjectStore {
  readonly servesLinks = true
  readonly #client: S3Client
  /** Never sends anything: links are signed for the address that clients have. */
  readonly #linkSigner: S3Client
  readonly #bucket: string
  readonly #links: FileLinks

  constructor(settings: ObjectStoreSettings, links: FileLinks) {
    this.#bucket = settings.bucket
    this.#links = links
    const options = {
      region: settings.region,
      credentials: { accessKeyId: settings.accessKeyId, secretAccessKey: settings.secretAccessKey },
      // The bucket's name in the path: needs neither a DNS entry nor a certificate for each bucket.
      forcePathStyle: true,
      // Most compatible stores know the newer checksums by halves or not at all.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      maxAttempts: ATTEMPTS,
      requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: IDLE_TIMEOUT_MS },
    } as const
    this.#client = new S3Client({ ...options, endpoint: settings.endpoint })
    this.#linkSigner = new S3Client({ ...options, endpoint: settings.publicEndpoint })
  }

  async put(key: string, content: Buffer | Readable, options: PutOptions): Promise<StoredObject> {
    const { mediaType, maxBytes, signal } = options
    const target = { Bucket: this.#bucket, Key: requireObjectKey(key), ContentType: mediaType }
    if (!Buffer.isBuffer(content)) return { bytes: await this.#upload(target, content, options), mediaType }
    if (content.length > maxBytes) throw new ObjectTooLarge(`The object is larger than ${maxBytes} bytes.`)
    const command = new PutObjectCommand({ ...target, Body: content })
    await this.#client.send(command, signal ? { abortSignal: signal } : {})
    return { bytes: content.length, mediaType }
  }

  async #upload(
    target: { Bucket: string; Key: string; ContentType: string },
    content: Readable,
    options: PutOptions,
  ): Promise<number> {
    let length = 0
    let failure: unknown = null
    async function* countBytes() {
      try {
        for await (const piece of limitBytes(content, options)) {
          length += piece.length
          yield piece
        }
      } catch (error) {
        failure = error
        throw error
      }
    }
    const body = Readable.from(countBytes(), { objectMode: false })
    const upload = new Upload({
      client: this.#client,
      params: { ...target, Body: body },
      partSize: PART_BYTES,
      queueSize: PARTS_AT_ONCE,
      leavePartsOnError: false,
    })
    try {
      await upload.done()
      return length
    } catch (error) {
      // Where the abort fails as well, the client reports only that.
      throw failure ?? error
    } finally {
      body.destroy()
    }
  }

  async get(key: string, range?: ByteRange): Promise<ObjectBody | null> {
    const command = new GetObjectCommand({
      Bucket: this.#bucket,
      Key: requireObjectKey(key),
      ...(range ? { Range: `bytes=${range.first}-${range.last}` } : {}),
    })
    const found = await catchMissing(this.#client.send(command))
    if (found === null) return null
    const whole = /\/(\d+)$/.exec(found.ContentRange ?? '')?.[1]
    return {
      bytes: whole === undefined ? (found.ContentLength ?? 0) : Number(whole),
      mediaType: found.ContentType ?? UNKNOWN_MEDIA_TYPE,
      stream: found.Body as Readable,
    }
  }

  async head(key: string): Promise<StoredObject | null> {
    const command = new HeadObjectCommand({ Bucket: this.#bucket, Key: requireObjectKey(key) })
    const found = await catchMissing(this.#client.send(command))
    return found && { bytes: found.ContentLength ?? 0, mediaType: found.ContentType ?? UNKNOWN_MEDIA_TYPE }
  }

  /** Deletes objects one by one: the request for many at once needs a checksum that compatible stores disagree on. */
  async delete(keys: readonly string[]): Promise<void> {
    const rest = keys.map(requireObjectKey)
    const work = async () => {
      for (let key = rest.pop(); key !== undefined; key = rest.pop())
        await catchMissing(this.#client.send(new DeleteObjectCommand({ Bucket: this.#bucket, Key: key })))
    }
    await Promise.all(Array.from({ length: DELETES_AT_ONCE }, work))
  }

  makeLink(key: string, expiresAt: number): Promise<string> {
    const command = new GetObjectCommand({ Bucket: this.#bucket, Key: requireObjectKey(key) })
    const aheadMs = Math.min(MAX_LINK_MS, Math.max(MS_PER_SECOND, expiresAt - Date.now()))
    return getSignedUrl(this.#linkSigner, command, { expiresIn: Math.ceil(aheadMs / MS_PER_SECOND) })
  }

  /**
   * Returns a permanent link. A pre-signed link is valid for at most a week: this one leads to the gateway, which
   * signs a fresh one each time.
   */
  makePermanentLink(key: string): string {
    return this.#links.print(key, null)
  }

  async ping(): Promise<void> {
    await this.#client.send(new HeadBucketCommand({ Bucket: this.#bucket }))
  }
}
