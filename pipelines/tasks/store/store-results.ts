/**
 * Stores results before the upstream's links expire, and so ends the task: what was delivered is charged. A file that
 * cannot be copied keeps the upstream's own link; a file of a type that was not ordered is left out.
 * See docs/api-rules.md, "Files and link lifetimes".
 */
import type { ResultFile, TaskResult } from '../../../schemas/media/job.ts'
import { emptyResult } from '../../../schemas/media/job.ts'
import { findUpstreamPrice } from '../../../src/core/media/pricing.ts'
import { isOfRole } from '../../../src/core/media/type.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import type { ResultLinks } from '../end/settlement.ts'
import { findTaskChannel, type TaskEngine, transition } from '../engine.ts'
import { OtherKindOfFile } from '../ports.ts'
import { endStep, type Step } from '../step.ts'
import { reportExcess } from './excess.ts'
import { chooseRetentionMs, KEEPING, makeKey } from './result-files.ts'

const TRIES = 3
const RETRY_PAUSE_MS = 1_000
const COPY_MAX_BYTES = 2 * 1024 * 1024 * 1024
const COPY_TIMEOUT_MS = 120_000
/** Within the grace of a waiting client, so that a result that came just in time can be copied. */
const LAST_COPY_MS = 2_000

/** Stores the results and ends the task. If the process dies, another one starts over with the same keys. */
export const storeResults: Step = async (deps, task) => {
  const result = task.result ?? emptyResult()
  const copies = await Promise.all(result.files.map((_, index) => storeFile(deps, task, result, index)))
  const others = copies.filter(isOther)
  const files = copies.filter((file) => !isOther(file))
  const beyond = others.map(({ role, media_type }) => `${media_type} in place of ${NOUNS[role]}, left out`)
  reportExcess(deps, task, beyond)
  const after = { ...result, files, beyond: [...result.beyond, ...beyond] }
  const missing = others.find(isMain)
  if (missing !== undefined && !files.some(isMain)) {
    const errorMessage = `The upstream delivered ${missing.media_type} in place of ${NOUNS[missing.role]}: it made no ${missing.role}.`
    const changes = { errorCode: 'generation_failed', errorMessage, result: { ...after, files: [] } }
    return endStep(await transition(deps, task, 'failed', changes))
  }
  const links = await makeLinks(deps, task, files)
  const upstreamPrice = findUpstreamPrice(deps.catalog().config, task)
  return endStep(await transition(deps, task, 'stored', { result: after }, { links, upstreamPrice }))
}

const NOUNS: Readonly<Record<ResultFile['role'], string>> = {
  image: 'an image',
  video: 'a video',
  audio: 'a sound',
  cover: 'a cover',
}

const isMain = ({ role }: ResultFile): boolean => role !== 'cover'

const isOther = ({ role, media_type }: ResultFile): boolean =>
  media_type !== null && !isOfRole(role, media_type)

/** Returns the file with its key, or with the type that was not ordered. */
async function storeFile(
  deps: TaskEngine,
  task: Task,
  result: TaskResult,
  index: number,
): Promise<ResultFile> {
  const file = result.files[index]!
  if (file.key !== null || file.upstream_url === null) return file
  const key = makeKey(task, result.files, index, file.media_type)
  const copy = await copyFile(deps, task, { ...file, upstream_url: file.upstream_url }, key)
  if (copy === null) return file
  if (copy instanceof OtherKindOfFile) return { ...file, media_type: copy.mediaType, upstream_url: null }
  // The image's own size counts, not the reported one: the price may depend on it.
  const { mediaType, width, height, kept_until } = copy
  const size = width === null || height === null ? {} : { width, height }
  return { ...file, ...size, key, media_type: mediaType, upstream_url: null, kept_until }
}

/**
 * Records when the next stored file expires, before it is stored, so that a process that dies in between leaves nothing
 * behind. Returns that instant; null if the file stays forever.
 */
export async function recordExpiry(
  { database, catalog, now }: TaskEngine,
  { kind }: Task,
  key: string,
): Promise<number | null> {
  const ms = chooseRetentionMs(kind, catalog().config.storage.retention_days)
  if (ms === null) return null
  const expiresAt = now() + ms
  await database.tasks.recordObjects([{ key, expiresAt }])
  return expiresAt
}

async function copyFile(
  deps: TaskEngine,
  task: Task,
  { role, upstream_url: url }: ResultFile & { readonly upstream_url: string },
  key: string,
) {
  const { storage, log, now } = deps
  const channel = findTaskChannel(deps, task)
  const request = channel?.adapter.fileRequest?.(channel.route.channel, url) ?? null
  const opensAt = request?.url ?? channel?.route.channel.base_url
  const allowedHost = opensAt === undefined ? null : new URL(opensAt).host
  // A waiting client gets its answer in time, if necessary with the upstream's link.
  const untilAt = task.isAwaited ? task.deadlineAt : Number.POSITIVE_INFINITY
  for (let attempt = 1; ; attempt++) {
    const pauseMs = RETRY_PAUSE_MS * attempt
    try {
      const headers = request === null ? [] : await deps.calls.makeHeaders(request)
      const timeoutMs = Math.min(COPY_TIMEOUT_MS, Math.max(LAST_COPY_MS, untilAt - now()))
      const accepts = (mediaType: string) => isOfRole(role, mediaType)
      const limits = { maxBytes: COPY_MAX_BYTES, timeoutMs, headers, accepts }
      const kept_until = await recordExpiry(deps, task, key)
      const copy = await storage.copy(url, key, limits, allowedHost, AbortSignal.timeout(timeoutMs))
      return { ...copy, kept_until }
    } catch (error) {
      if (error instanceof OtherKindOfFile) return error
      const reason = (error as Error).message
      if (attempt === TRIES || now() + pauseMs >= untilAt) {
        log.warn({ task: task.id, key, reason }, "Failed to copy a result; answered with the upstream's link")
        return null
      }
      await deps.pause(pauseMs)
    }
  }
}

/** Returns the links to the files of a task, and when they expire. */
async function makeLinks(
  { storage, now }: TaskEngine,
  { kind }: Task,
  files: readonly ResultFile[],
): Promise<ResultLinks> {
  const { linkMs } = KEEPING[kind]
  const expiresAt = linkMs === null || files.length === 0 ? null : now() + linkMs
  const link = (key: string) =>
    expiresAt === null ? storage.permanentLink(key) : storage.link(key, expiresAt)
  const urls = await Promise.all(
    files.map(({ key, upstream_url }) => (key === null ? upstream_url : link(key))),
  )
  return { urls: urls.filter((url) => url !== null), expiresAt }
}
