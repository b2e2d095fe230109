/** Prepares a job's files as the upstream takes them: as links, inline in the request, or uploaded from the store. */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import {
  type FileRef,
  fileRef,
  INPUT_LIFETIME_MS,
  type MediaJob,
  mediaJob,
  type StoredFileRef,
} from '../../../schemas/media/job.ts'
import { VOICE_REFERENCE_MAX_SECONDS, VOICE_REFERENCE_MIN_SECONDS } from '../../../schemas/media/voices.ts'
import type { TaskAdapter } from '../../../src/channels/media/adapter.ts'
import { measureAudioSeconds } from '../../../src/core/media/audio-length.ts'
import { findExtension } from '../../../src/core/media/type.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import type { TaskEngine } from '../engine.ts'
import { StoreFailure, type TaskStorage } from '../ports.ts'

/** The limit of all files that are fetched for one job: as large as the largest upload. */
const TAKE_IN_MAX_BYTES = 100 * 1024 * 1024
const TAKE_IN_TIMEOUT_MS = 30_000
/** The limit of all inline files of one request. */
const INLINE_MAX_BYTES = 64 * 1024 * 1024
const MAX_NAME_CHARS = 100

/** A file of the request that could not be fetched. */
export class UnusableFile extends Error {}

export interface PreparedJob {
  readonly job: MediaJob
  readonly resolveUrl: (file: FileRef) => string
}

/** @throws UnusableFile with a message for the client; StoreFailure */
export async function prepareFiles(
  deps: TaskEngine,
  task: Task,
  adapter: TaskAdapter,
  { private_links }: Pick<ChannelEntry, 'private_links'>,
): Promise<PreparedJob> {
  const replaced = new Map<FileRef, FileRef>()
  let leftBytes = TAKE_IN_MAX_BYTES
  for (const [index, file] of (adapter.takesIn?.(task.job) ?? []).entries()) {
    if (file.from !== 'url') continue
    const taken = await uploadFile(deps, task, { url: file.url, index, maxBytes: leftBytes })
    leftBytes -= taken.bytes
    replaced.set(file, taken)
  }
  const job = withFiles(task.job, replaced)
  if (!private_links) await checkLinks(deps, task, job)
  const texts = adapter.inlines ? await readInline(deps, job) : new Map<string, string>()
  return {
    job,
    resolveUrl: (file) => (file.from === 'url' ? file.url : (texts.get(file.key) ?? '')),
  }
}

/** Checks the links that the upstream fetches itself. */
async function checkLinks({ storage, log }: TaskEngine, task: Task, job: MediaJob): Promise<void> {
  const links = listFiles(job).flatMap((file) => (file.from === 'url' ? [file.url] : []))
  try {
    await storage.checkLinks(links)
  } catch (error) {
    log.info({ task: task.id, reason: (error as Error).message }, 'Refused a link of a job')
    throw new UnusableFile((error as Error).message)
  }
}

interface LinkedFile {
  readonly url: string
  /** Its index among the job's files. */
  readonly index: number
  readonly maxBytes: number
}

async function uploadFile(deps: TaskEngine, task: Task, linked: LinkedFile): Promise<StoredFileRef> {
  const file = await fetchFile(deps, task, linked)
  const problem = task.job.work === 'voice' ? await findReferenceProblem(deps.storage, file) : null
  if (problem !== null) throw new UnusableFile(problem)
  return file
}

async function fetchFile(
  { storage, database, now, log }: TaskEngine,
  task: Task,
  { url, index, maxBytes }: LinkedFile,
): Promise<StoredFileRef> {
  const key = `inputs/${task.requestId}-${task.id}-${index + 1}`
  await database.tasks.recordObjects([{ key, expiresAt: now() + INPUT_LIFETIME_MS }])
  const limits = { maxBytes, timeoutMs: TAKE_IN_TIMEOUT_MS }
  try {
    const { bytes, mediaType } = await storage.copy(url, key, limits, null)
    return { from: 'store', key, media_type: mediaType, bytes, name: makeName(url, mediaType) }
  } catch (error) {
    if (error instanceof StoreFailure) throw error
    log.info({ task: task.id, reason: (error as Error).message }, 'Failed to fetch a file of a job')
    throw new UnusableFile((error as Error).message)
  }
}

function makeName(url: string, mediaType: string): string {
  const last = decodeSafely(new URL(url).pathname.split('/').at(-1) ?? '')
  const name = last.replace(/[^\w.-]+/g, '_').slice(-MAX_NAME_CHARS)
  return name.includes('.') ? name : `${name || 'file'}.${findExtension(mediaType) ?? 'bin'}`
}

function decodeSafely(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Returns data URIs by key. */
async function readInline({ storage }: TaskEngine, job: MediaJob): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  let left = INLINE_MAX_BYTES
  for (const file of listFiles(job)) {
    if (file.from !== 'store' || texts.has(file.key)) continue
    left -= file.bytes
    if (left < 0) throw new UnusableFile('The files of the request are too large together.')
    const bytes = await storage.read(file.key, file.bytes).catch((error) => {
      if (error instanceof StoreFailure) throw error
      throw new UnusableFile('A file of the request is not there any more.')
    })
    texts.set(file.key, `data:${file.media_type};base64,${bytes.toString('base64')}`)
  }
  return texts
}

/** Returns all files of a job, each once. */
export function listFiles(value: unknown): FileRef[] {
  if (typeof value !== 'object' || value === null) return []
  const file = fileRef.safeParse(value)
  return file.success ? [value as FileRef] : Object.values(value).flatMap(listFiles)
}

/** Returns the job with some files replaced. The keys of `replaced` are the objects that `listFiles` returned. */
export function withFiles(job: MediaJob, replaced: ReadonlyMap<FileRef, FileRef>): MediaJob {
  if (replaced.size === 0) return job
  const copy = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value
    const other = replaced.get(value as FileRef)
    if (other !== undefined) return other
    if (Array.isArray(value)) return value.map(copy)
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, copy(inner)]))
  }
  return mediaJob.parse(copy(job))
}

/** Compression adds or removes this much at either end. */
const TOLERANCE_SECONDS = 0.1
/** More than three minutes without compression; a larger file is left to the upstream. */
const READ_MAX_BYTES = 64 * 1024 * 1024

/**
 * Returns a message for the client if the recording for a voice is too long or too short; null if it is not, or its
 * length is not known. No upstream is asked.
 */
export async function findReferenceProblem(
  storage: Pick<TaskStorage, 'read'>,
  { key, bytes }: { readonly key: string; readonly bytes: number },
): Promise<string | null> {
  if (bytes > READ_MAX_BYTES) return null
  const seconds = measureAudioSeconds(await storage.read(key, bytes))
  if (seconds === null) return null
  const isRight =
    seconds > VOICE_REFERENCE_MIN_SECONDS - TOLERANCE_SECONDS &&
    seconds < VOICE_REFERENCE_MAX_SECONDS + TOLERANCE_SECONDS
  return isRight
    ? null
    : `The recording must be ${VOICE_REFERENCE_MIN_SECONDS} to ${VOICE_REFERENCE_MAX_SECONDS} seconds long; it is ${seconds.toFixed(1)}.`
}
