/** Object stores to test with: a folder, and a bucket of a third party's server. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import S3rver from 's3rver'
import type { Test } from 'tap'
import type { ObjectStoreSettings } from '../../../schemas/config/settings.ts'
import { fileLinks, linkKey } from '../../../src/core/media/file-link.ts'
import { BucketStore } from '../../../src/storage/bucket-store.ts'
import { FolderStore } from '../../../src/storage/folder-store.ts'
import { answerWhenWritten } from '../../support/bucket.ts'

export const MASTER_KEY = randomBytes(32)
export const PUBLIC_URL = 'https://gateway.test'
export const LINKS = fileLinks(PUBLIC_URL, linkKey(MASTER_KEY))

export async function temporaryFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-storage-'))
  t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }))
  return folder
}

export async function folderStore(t: Test): Promise<{ store: FolderStore; folder: string }> {
  const folder = await temporaryFolder(t)
  return { store: await FolderStore.open(folder, LINKS), folder }
}

export interface TestBucket {
  readonly store: BucketStore
  readonly settings: ObjectStoreSettings
  /** Method and path with query of each request, in order. */
  readonly requests: string[]
}

/** A bucket of a third party's server, gone with the test. */
export async function bucketStore(t: Test): Promise<TestBucket> {
  const directory = await temporaryFolder(t)
  const server = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory,
    configureBuckets: [{ name: 'media' }],
  })
  answerWhenWritten(server.store)
  const { port } = await server.run()
  // On a busy machine idle connections that end at once use up the client's retries.
  server.httpServer.keepAliveTimeout = 0
  const requests: string[] = []
  server.httpServer.on('request', ({ method, url }) => requests.push(`${method} ${url}`))
  t.teardown(() => {
    server.httpServer.closeAllConnections()
    return server.close()
  })
  const endpoint = `http://127.0.0.1:${port}`
  const settings = {
    endpoint,
    publicEndpoint: endpoint,
    region: 'us-east-1',
    bucket: 'media',
    accessKeyId: 'S3RVER',
    secretAccessKey: 'S3RVER',
  }
  return { store: new BucketStore(settings, LINKS), settings, requests }
}

export async function bytesOf(stream: Readable): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of stream) pieces.push(piece)
  return Buffer.concat(pieces)
}
