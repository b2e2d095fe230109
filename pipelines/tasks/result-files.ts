/** Where results stand in the store, and for how long. Source: specification, "Link lifetimes"; decisions, "Media". */
import type { ResultFile } from '../../schemas/media-job.ts'
import type { TaskKind } from '../../schemas/task.ts'
import { extensionOf } from '../../src/core/media-type.ts'
import type { Task } from '../../src/postgres/task-types.ts'

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS
const WEEK_MS = 7 * DAY_MS

interface Keeping {
  readonly folder: string
  /** The file goes after this; null: it stays. */
  readonly objectMs: number | null
  /** Links open for so long; null: as long as the file is there. */
  readonly linkMs: number | null
}

export const KEEPING: Readonly<Record<TaskKind, Keeping>> = {
  image: { folder: 'images', objectMs: DAY_MS, linkMs: DAY_MS },
  video: { folder: 'videos', objectMs: null, linkMs: WEEK_MS },
  music: { folder: 'music', objectMs: null, linkMs: WEEK_MS },
  speech: { folder: 'speech', objectMs: null, linkMs: null },
  avatar: { folder: 'avatars', objectMs: null, linkMs: WEEK_MS },
  voice: { folder: 'voices', objectMs: null, linkMs: WEEK_MS },
  transcript: { folder: 'transcripts', objectMs: DAY_MS, linkMs: DAY_MS },
  subtitle: { folder: 'subtitles', objectMs: DAY_MS, linkMs: DAY_MS },
}

const USUAL_EXTENSION: Readonly<Record<ResultFile['role'], string>> = {
  image: 'png',
  video: 'mp4',
  audio: 'mp3',
  cover: 'jpg',
}

/** Where one of its files stands: `images/<task id>-2.png`, `videos/<task id>.mp4`, `music/<task id>-1-cover.jpg`. */
export function keyOf(
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
  const extension = (mediaType === null ? null : extensionOf(mediaType)) ?? USUAL_EXTENSION[role]
  return `${KEEPING[kind].folder}/${id}${number}${mark}.${extension}`
}
