/** Where the store keeps results, and for how long. See docs/api-rules.md, "Files and link lifetimes". */
import type { ResultFile } from '../../../schemas/media/job.ts'
import type { TaskKind } from '../../../schemas/tasks/task.ts'
import { findExtension } from '../../../src/core/media/type.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS
const WEEK_MS = 7 * DAY_MS

/** Files of videos and songs outlive their last link by this long. */
const AFTER_LAST_LINK_MS = 30 * DAY_MS

interface Keeping {
  readonly folder: string
  /** The file is removed after this time; null if it stays. */
  readonly objectMs: number | null
  /** `storage.retention_days` overrides `objectMs`. */
  readonly isConfigurable?: true
  /** The life of a link; null for as long as the file exists. */
  readonly linkMs: number | null
}

export const KEEPING: Readonly<Record<TaskKind, Keeping>> = {
  image: { folder: 'images', objectMs: DAY_MS, linkMs: DAY_MS },
  video: { folder: 'videos', objectMs: WEEK_MS + AFTER_LAST_LINK_MS, linkMs: WEEK_MS, isConfigurable: true },
  music: { folder: 'music', objectMs: WEEK_MS + AFTER_LAST_LINK_MS, linkMs: WEEK_MS, isConfigurable: true },
  // Its links never expire unless the operator configures it.
  speech: { folder: 'speech', objectMs: null, linkMs: null, isConfigurable: true },
  avatar: { folder: 'avatars', objectMs: null, linkMs: WEEK_MS },
  voice: { folder: 'voices', objectMs: null, linkMs: WEEK_MS },
  transcript: { folder: 'transcripts', objectMs: DAY_MS, linkMs: DAY_MS },
  subtitle: { folder: 'subtitles', objectMs: DAY_MS, linkMs: DAY_MS },
  // Has no files here: the upstream keeps the response.
  response: { folder: 'responses', objectMs: DAY_MS, linkMs: DAY_MS },
}

/** Returns how long the object store keeps a file of this kind, in milliseconds; null: forever. */
export function chooseRetentionMs(kind: TaskKind, retentionDays: number | null): number | null {
  const { objectMs, isConfigurable } = KEEPING[kind]
  return isConfigurable && retentionDays !== null ? retentionDays * DAY_MS : objectMs
}

/** Returns whether the file still exists: neither deleted nor expired. */
export const isThere = ({ key, upstream_url, kept_until }: ResultFile, now: number): boolean =>
  (key !== null || upstream_url !== null) && (kept_until == null || now < kept_until)

const DEFAULT_EXTENSION: Readonly<Record<ResultFile['role'], string>> = {
  image: 'png',
  video: 'mp4',
  audio: 'mp3',
  cover: 'jpg',
}

/** Returns the key of a file: `images/<task id>-2.png`, `videos/<task id>.mp4`, `music/<task id>-1-cover.jpg`. */
export function makeKey(
  { kind, id }: Pick<Task, 'kind' | 'id'>,
  files: readonly ResultFile[],
  index: number,
  mediaType: string | null,
): string {
  const { role } = files[index]!
  const alike = files.flatMap((file, at) => (file.role === role ? [at] : []))
  const isNumbered = alike.length > 1 || role === 'image'
  const number = isNumbered ? `-${alike.indexOf(index) + 1}` : ''
  const mark = role === 'cover' ? '-cover' : ''
  const extension = (mediaType === null ? null : findExtension(mediaType)) ?? DEFAULT_EXTENSION[role]
  return `${KEEPING[kind].folder}/${id}${number}${mark}.${extension}`
}
