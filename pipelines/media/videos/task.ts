/** Prints a video task for its account. See docs/api-rules.md, "Tasks". */
import type { z } from 'zod'
import type { ResultFile } from '../../../schemas/media/job.ts'
import type { videoSubmitted, videoTask } from '../../../schemas/media/videos.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import type { FileLinks } from '../../../src/storage/store.ts'
import { readEnding } from '../../tasks/end/settlement.ts'
import { isThere } from '../../tasks/store/result-files.ts'
import { toEpochSeconds } from '../task-records.ts'

/** From the instant at which the link is requested. See docs/api-rules.md, "Files and link lifetimes". */
export const VIDEO_LINK_MS = 7 * 24 * 60 * 60 * 1000

type VideoTask = z.infer<typeof videoTask>

/** Prints the answer to a submit: always `queued`, whatever has happened to the task since. */
export const printSubmittedVideo = ({ id, model, submittedAt }: Task): z.infer<typeof videoSubmitted> => ({
  id,
  status: 'queued',
  model,
  created_at: toEpochSeconds(submittedAt),
})

/** Returns a link to the video: newly signed, or the upstream's own if it could not be copied. */
async function findLink(files: FileLinks, file: ResultFile, now: number) {
  const { key, upstream_url, kept_until } = file
  if (!isThere(file, now)) return {}
  if (key === null) return upstream_url === null ? {} : { video_url: upstream_url, expires_at: null }
  const expiresAt = Math.min(now + VIDEO_LINK_MS, kept_until ?? Number.POSITIVE_INFINITY)
  return { video_url: await files.makeLink(key, expiresAt), expires_at: toEpochSeconds(expiresAt) }
}

/** `now` is in epoch milliseconds. */
export async function printVideo(files: FileLinks, task: Task, now: number): Promise<VideoTask> {
  const { id, kind, state, model, submittedAt, result } = task
  const { code, message } = readEnding(task)
  const printed = {
    id,
    status: TASK_RULES[kind].outward[state] as VideoTask['status'],
    model,
    created_at: toEpochSeconds(submittedAt),
    ...(code !== null && { error: { code, message: message ?? '' } }),
  }
  if (state !== 'succeeded' || result === null) return printed
  const video = result.files.find(({ role }) => role === 'video')
  const seconds = result.seconds ?? video?.seconds ?? null
  const inputSeconds = result.input_seconds
  return {
    ...printed,
    ...(video !== undefined && (await findLink(files, video, now))),
    ...(seconds !== null && { duration_sec: seconds }),
    ...(inputSeconds !== null && { input_video_duration_sec: inputSeconds }),
  }
}
