/** Files that came in an answer itself: into the store before anything says that they are there. */
import type { ResultFile, TaskResult } from '../../schemas/media-job.ts'
import type { Produced } from '../../src/channels/media-adapter.ts'
import type { Task } from '../../src/postgres/task-types.ts'
import type { EngineDeps } from './engine.ts'
import { keyOf } from './result-files.ts'
import { keptUntil } from './store-results.ts'

const TRIES = 3
const RETRY_PAUSE_MS = 500

/** Of what has no number of its own: the longest that anybody makes at once has a dozen songs with their covers. */
const MAX_FILES = 32

const mostFiles = ({ job, price }: Pick<Task, 'job' | 'price'>): number =>
  job.work === 'image' || job.work === 'image_edit' ? Math.max(job.n, price.leastImages) : MAX_FILES

/** What goes beyond the order is neither delivered nor charged: nobody asked for it, and no money is held for it. */
function withinOrder(
  { log }: Pick<EngineDeps, 'log'>,
  task: Task,
  { result, inline }: Pick<Produced, 'result' | 'inline'>,
): Pick<Produced, 'result' | 'inline'> {
  const most = mostFiles(task)
  const count = result.files.length
  if (count <= most) return { result, inline }
  log.warn(
    { task: task.id, channel: task.channelId, files: count, most },
    'An upstream made more files than were asked for; those beyond are left out.',
  )
  return {
    result: { ...result, files: result.files.slice(0, most) },
    inline: inline.filter(({ file }) => file < most),
  }
}

/** The result with the places of its files; null when the store does not take them. */
export async function deliverInline(
  deps: EngineDeps,
  task: Task,
  produced: Pick<Produced, 'result' | 'inline'>,
): Promise<TaskResult | null> {
  const { result, inline } = withinOrder(deps, task, produced)
  if (inline.length === 0) return result
  const files = [...result.files]
  for (const { file: index, bytes, mediaType } of inline) {
    const file = files[index]
    if (file === undefined) continue
    const key = keyOf(task, result.files, index, mediaType)
    const put = await putFile(deps, task, key, bytes, mediaType)
    if (put === null) return null
    files[index] = { ...file, key, media_type: mediaType, upstream_url: null, ...put }
  }
  return { ...result, files }
}

/** Null when the store does not take it. */
async function putFile(
  deps: EngineDeps,
  task: Task,
  key: string,
  bytes: Buffer,
  mediaType: string,
): Promise<Pick<ResultFile, 'kept_until'> | null> {
  for (let attempt = 1; ; attempt++) {
    try {
      const kept_until = await keptUntil(deps, task, key)
      await deps.storage.put(key, bytes, mediaType)
      return { kept_until }
    } catch (error) {
      deps.log.error({ task: task.id, key, error, attempt }, 'A result cannot be stored.')
      if (attempt === TRIES) return null
      await deps.pause(RETRY_PAUSE_MS * attempt)
    }
  }
}
