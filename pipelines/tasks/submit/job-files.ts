/** The files that a job names, and the job with some of them in another place. */
import { type FileRef, fileRef, type MediaJob, mediaJob } from '../../../schemas/media/job.ts'

/** All that are in it, each once. */
export function listFiles(value: unknown): FileRef[] {
  if (typeof value !== 'object' || value === null) return []
  const file = fileRef.safeParse(value)
  return file.success ? [value as FileRef] : Object.values(value).flatMap(listFiles)
}

/** `replaced` is by the very objects that `listFiles` gave. */
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
