/** Stores files that came inside an answer, before anything refers to them. */
import type { ResultFile, TaskResult } from '../../../schemas/media/job.ts'
import type { Produced } from '../../../src/channels/media/adapter.ts'
import { clampToOrder } from '../../../src/core/media/order.ts'
import { isOfRole, sniffMediaType } from '../../../src/core/media/type.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import type { TaskEngine } from '../engine.ts'
import { reportExcess } from './excess.ts'
import { makeKey } from './result-files.ts'
import { recordExpiry } from './store-results.ts'

const TRIES = 3
const RETRY_PAUSE_MS = 500

/** Returns the result with the keys of its files; null if the store fails. */
export async function deliverInline(
  deps: TaskEngine,
  task: Task,
  produced: Pick<Produced, 'result' | 'inline'>,
): Promise<TaskResult | null> {
  // The charge of an answer in tokens is bounded where it is charged.
  if (task.price.unit === '1M_tokens') return produced.result
  const result = clampToOrder(task.job, task.price, produced.result)
  reportExcess(deps, task, result.beyond)
  const inline = produced.inline.filter(({ file }) => file < result.files.length)
  if (inline.length === 0) return result
  const files = [...result.files]
  for (const { file: index, bytes, mediaType } of inline) {
    const file = files[index]
    if (file === undefined) continue
    const sniffed = sniffMediaType(bytes)
    if (sniffed !== null && !isOfRole(file.role, sniffed)) {
      // The end of the task drops it, as it does for fetched files.
      files[index] = { ...file, media_type: sniffed, upstream_url: null }
      continue
    }
    const key = makeKey(task, result.files, index, mediaType)
    const put = await putFile(deps, task, key, bytes, mediaType)
    if (put === null) return null
    files[index] = { ...file, key, media_type: mediaType, upstream_url: null, ...put }
  }
  return { ...result, files }
}

/** Returns null if the store fails. */
async function putFile(
  deps: TaskEngine,
  task: Task,
  key: string,
  bytes: Buffer,
  mediaType: string,
): Promise<Pick<ResultFile, 'kept_until'> | null> {
  for (let attempt = 1; ; attempt++) {
    try {
      const kept_until = await recordExpiry(deps, task, key)
      await deps.storage.put(key, bytes, mediaType)
      return { kept_until }
    } catch (error) {
      deps.log.error({ task: task.id, key, error, attempt }, 'Failed to store a result')
      if (attempt === TRIES) return null
      await deps.pause(RETRY_PAUSE_MS * attempt)
    }
  }
}
